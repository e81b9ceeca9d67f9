#!/usr/bin/env bash
# Runs the engine in the foreground:
#
#   run.sh MODEL.gguf PORT [SEQUENCES [CONTEXT [CHAT-TEMPLATE]]]
#
# PORT 0 takes a free one. The first line on stdout is "listening
# 127.0.0.1:PORT". Ends with 3 when the engine is not installed, and with the
# process that reads the other end when its standard input is a pipe.
set -euo pipefail
if (( $# < 2 || $# > 5 )); then
    echo "usage: run.sh MODEL.gguf PORT [SEQUENCES [CONTEXT [CHAT-TEMPLATE]]]" >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=$("$here/install.sh" --where)
if [[ ! -d $home ]]; then
    echo "engine: not installed in $home: run \"make engine\" first" >&2
    exit 3
fi
exec node "$here/server.mjs" --home "$home" --model "$1" --port "$2" --sequences "${3:-4}" --context "${4:-512}" ${5:+--chat-template-file "$5"}
