# SPDX-License-Identifier: Apache-2.0
# In an empty directory, since ONNX Runtime does not write over a context that is there.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
execute_process(COMMAND ${PROGRAM} ${LIBRARY} ${MODEL} ${WORK}/context.onnx WORKING_DIRECTORY ${WORK}
                RESULT_VARIABLE code)
file(REMOVE_RECURSE ${WORK})
if(NOT code EQUAL 0)
  message(FATAL_ERROR "plain_test: ${code}")
endif()
