#!/bin/sh
# Says whether a file has the right format for this competition. It shows no score.
# Usage: validate_submission.sh FILE
# Exit code: 0 the format is right, 1 it is wrong, 2 it could not be checked.

url=${VALIDATOR_URL:-http://localhost:5000/validate}

if [ $# -ne 1 ]; then
    echo "Usage: $0 FILE" >&2
    exit 2
fi
if [ ! -f "$1" ] || [ ! -r "$1" ]; then
    echo "$1 is not a file that can be read." >&2
    exit 2
fi

post() {
    # The file is passed on stdin, so that its name can be anything.
    if command -v curl >/dev/null 2>&1; then
        curl --silent --show-error --form 'file=@-;filename=submission.csv' "$url" <"$1"
    elif command -v python3 >/dev/null 2>&1; then
        python3 -c '
import sys, urllib.error, urllib.request
mark = "submission-7c1f0a9e5b"
head = f"--{mark}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"submission.csv\"\r\n\r\n"
body = head.encode() + sys.stdin.buffer.read() + f"\r\n--{mark}--\r\n".encode()
form = {"Content-Type": f"multipart/form-data; boundary={mark}"}
try:
    answer = urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, form))
except urllib.error.HTTPError as error:
    answer = error
except OSError as error:
    sys.exit(str(error))
print(answer.read().decode())
' "$url" <"$1"
    else
        echo "Neither curl nor python3 is there." >&2
        return 1
    fi
}

if ! answer=$(post "$1"); then
    echo "The validator at $url cannot be reached." >&2
    exit 2
fi

# The answer is one flat JSON object: {"is_valid":...,"result":"..."} or {"error":"...","details":"..."}.
case $answer in
    '{"is_valid":true,'*) code=0 text=${answer#*'"result":"'} ;;
    '{"is_valid":false,'*) code=1 text=${answer#*'"result":"'} ;;
    *'"details":"'*) code=2 text=${answer#*'"details":"'} ;;
    *) code=2 text=$answer ;;
esac
text=${text%'"}'}

replace() {
    rest=$text text=
    while [ "$rest" != "${rest#*"$1"}" ]; do
        text=$text${rest%%"$1"*}$2
        rest=${rest#*"$1"}
    done
    text=$text$rest
}
replace '\"' '"'
replace '\n' '
'
if [ $code = 2 ]; then
    printf '%s\n' "$text" >&2
else
    printf '%s\n' "$text"
fi
exit $code
