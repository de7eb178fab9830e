# SPDX-License-Identifier: Apache-2.0
# Tests against other tools, which `tools/setup.sh peers` installs: `./dev test -L peers`.

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
  set(requirements ${PROJECT_SOURCE_DIR}/tools/setup/requirements-peers.txt)
  file(SHA256 ${requirements} requirements_hash)
  string(SUBSTRING ${requirements_hash} 0 12 requirements_hash)
  string(REGEX REPLACE "[.].*" "" script ${name})
  add_test(NAME ${name}
           COMMAND ${TENONNX_DEPS}/peers-python-${requirements_hash}/bin/python3
                   ${CMAKE_CURRENT_SOURCE_DIR}/${script}_test.py $<TARGET_FILE:tenonnx> ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS peers TIMEOUT 7200 RUN_SERIAL ON
                                          SKIP_RETURN_CODE 77)
endfunction()
