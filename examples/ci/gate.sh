#!/usr/bin/env bash
# Runs a suite as a gate of any CI system and exits as the verdict says: 0 pass,
# 1 fail, 3 inconclusive, 2 and 4 when there is no verdict. Only 0 may go live.
#
#   gate.sh SUITE [DIR]
#
# DIR (default: assay-gate) gets runs/, report.md, junit.xml and assay.sarif to be
# archived. From the environment:
#   ASSAY            the program; default: assay
#   ASSAY_WEBHOOK    address of a Slack-compatible webhook that hears of a gate that did not pass
#   ASSAY_PAUSE      address of a hook that holds the following stages
#   GITHUB_STEP_SUMMARY  set by GitHub: gets report.md, too
set -euo pipefail
suite=${1:?usage: gate.sh SUITE [DIR]} dir=${2:-assay-gate} assay=${ASSAY:-assay}

mkdir -p "$dir/runs"
code=0
"$assay" run "$suite" --runs "$dir/runs" || code=$?

# Runs are named by their start, so the last one is this one.
run=
for d in "$dir"/runs/*/; do [[ -e $d/manifest.json ]] && run=${d%/}; done
if [[ -z $run ]]; then
    echo "gate: nothing was measured" >&2
    exit "$code"
fi

# The verdict is in $code already, whatever these exit with.
"$assay" report "$run" --format markdown -o "$dir/report.md" || true
"$assay" report "$run" --format junit -o "$dir/junit.xml" || true
"$assay" report "$run" --format sarif -o "$dir/assay.sarif" || true
if [[ -n ${GITHUB_STEP_SUMMARY-} ]]; then cat "$dir/report.md" >>"$GITHUB_STEP_SUMMARY"; fi

tell=()
if [[ -n ${ASSAY_WEBHOOK-} ]]; then tell+=(--webhook env:ASSAY_WEBHOOK); fi
if [[ -n ${ASSAY_PAUSE-} ]]; then tell+=(--pause env:ASSAY_PAUSE); fi
if ((code != 0 && ${#tell[@]} > 0)); then
    "$assay" notify "$run" "${tell[@]}" || echo "gate: the webhook was not told; the verdict stands" >&2
fi
exit "$code"
