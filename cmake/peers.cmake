# SPDX-License-Identifier: Apache-2.0
# Tests against other tools, which `tools/setup.sh peers` installs: `./dev test -L peers`.

# Their Python, which has onnxruntime; by the hash of what is installed into it.
file(SHA256 ${PROJECT_SOURCE_DIR}/tools/setup/requirements-peers.txt peers_hash)
string(SUBSTRING ${peers_hash} 0 12 peers_hash)
set(TENONNX_PEERS_PYTHON ${TENONNX_DEPS}/peers-python-${peers_hash}/bin/python3)

# The 640 px exports that tools/models/export_models.py makes.
set(TENONNX_EXPORTS_DIRECTORY $ENV{TENONNX_EXPORTS})
if(NOT TENONNX_EXPORTS_DIRECTORY)
  set(TENONNX_EXPORTS_DIRECTORY $ENV{TENONNX_CACHE})
  if(NOT TENONNX_EXPORTS_DIRECTORY)
    set(TENONNX_EXPORTS_DIRECTORY $ENV{HOME}/.cache/tenonnx)
  endif()
  string(APPEND TENONNX_EXPORTS_DIRECTORY /exports)
endif()

# tenonnx_peer_test(NAME MODEL...): runs NAME_test.py of this directory with the peers' Python, as
# NAME_test.py TENONNX MODEL...; NAME may end in ".variant". Nothing else runs beside it.
function(tenonnx_peer_test name)
  if(TENONNX_SANITIZE)
    return()
  endif()
  string(REGEX REPLACE "[.].*" "" script ${name})
  add_test(NAME ${name}
           COMMAND ${TENONNX_PEERS_PYTHON}
                   ${CMAKE_CURRENT_SOURCE_DIR}/${script}_test.py $<TARGET_FILE:tenonnx> ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS peers TIMEOUT 7200 RUN_SERIAL ON
                                          SKIP_RETURN_CODE 77)
endfunction()
