# SPDX-License-Identifier: Apache-2.0
# Compares the operations that PROGRAM knows with the recorded registry.
execute_process(COMMAND ${PROGRAM} --json ${FRESH}/ops.json COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PYTHON} ${SOURCE}/tools/check_ops.py ${FRESH}/ops.json
  ${SOURCE}/tests/conformance/registry.json COMMAND_ERROR_IS_FATAL ANY)
