#!/bin/bash
set -x

eval "$(conda shell.bash hook)"
conda activate agent

# As agents do that were written for folders they may change.
if [ "$OBFUSCATE" = "true" ]; then
  if [ ! -w /home/data/ ]; then
    echo "cannot obfuscate"
    exit 1
  fi
  mv /home/instructions_obfuscated.txt /home/instructions.txt
fi
sed -i 's|/home/||g' /home/instructions.txt
cat /home/data/description.md >> ${AGENT_DIR}/full_instructions.txt
echo "competition=$COMPETITION_ID steps=$STEP_LIMIT seconds=$TIME_LIMIT_SECS"

if [ -n "$BUILT_BY_DOCKER" ]; then
  set -e
  test "$PWD" = ${AGENT_DIR}/workspace
  grep notes /home/notes.txt
  grep "when the image was built" made.txt
  grep "as the image has it" ${AGENT_DIR}/courier.py
  echo "through a link" > logs/link.txt
  python -c 'import packed; print("packed in the", packed.WHERE)'
  echo "$PATH" | grep "^/opt/conda/envs/agent/bin:\|^/home/agent/workspace:"
  set +e
fi

conda install -y -n agent nodejs
echo "conda install ended with $?"
conda run -n agent --no-capture-output python ${AGENT_DIR}/courier.py "$@"
(source /opt/conda/bin/activate agent && echo "activated $CONDA_DEFAULT_ENV")
(. /opt/conda/etc/profile.d/conda.sh && conda activate && echo "sourced $CONDA_DEFAULT_ENV")
bash /home/validate_submission.sh /home/submission/submission.csv
