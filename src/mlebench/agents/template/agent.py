"""An agent: it submits the sample submission, so that there is something valid, and then does what you write below.

It may read DATA_DIR and write to SUBMISSION_DIR, CODE_DIR, LOGS_DIR and AGENT_DIR. Only SUBMISSION_DIR/submission.csv
is graded, when the agent has ended or its time is up.
"""

import http.client
import json
import os
import time
import urllib.request
from pathlib import Path

STARTED = time.monotonic()
DATA = Path(os.environ["DATA_DIR"])
SUBMISSION = Path(os.environ["SUBMISSION_DIR"]) / "submission.csv"
SEED = int(os.environ.get("SEED", "0"))


def main() -> None:
    instructions = Path(os.environ["INSTRUCTIONS"]).read_text(encoding="utf-8")
    description = (DATA / "description.md").read_text(encoding="utf-8")
    print(f"{len(instructions.split())} words of instructions, {len(description.split())} words of description")

    submit(Path(os.environ["SAMPLE_SUBMISSION"]).read_bytes())

    # Your code goes here. Train on the files in DATA, call submit() whenever you have something better, and mind
    # seconds_left(). Use SEED wherever you draw random numbers, so that a run can be repeated.

    print(f"done with {seconds_left():.0f} seconds left")


def submit(content: bytes) -> None:
    """Submit a CSV file, replacing the last one, if its format is right."""
    is_valid, message = validate(content)
    print(message)
    if is_valid:
        # One rename: if time runs out now, the submission is the old one or the new one, never half of it.
        part = SUBMISSION.with_suffix(".part")
        part.write_bytes(content)
        part.replace(SUBMISSION)


def validate(content: bytes) -> tuple[bool, str]:
    """Whether a submission has the right format, and what is wrong with it. This says nothing about its score."""
    address = os.environ.get("VALIDATOR_URL")
    if not address:
        return True, "There is no validator here; the format was not checked."
    limit = "mlebench-form-boundary"
    head = f'--{limit}\r\nContent-Disposition: form-data; name="file"; filename="submission.csv"\r\n\r\n'
    body = head.encode() + content + f"\r\n--{limit}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={limit}"}
    request = urllib.request.Request(f"{address.removesuffix('/validate').rstrip('/')}/validate", body, headers)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=300) as answer:
            verdict = json.load(answer)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return True, f"The validator does not answer ({error}); the format was not checked."
    return bool(verdict.get("is_valid")), str(verdict.get("result"))


def seconds_left() -> float:
    limit = float(os.environ.get("TIME_LIMIT_SECS", "inf"))
    return limit - (time.monotonic() - STARTED)


if __name__ == "__main__":
    main()
