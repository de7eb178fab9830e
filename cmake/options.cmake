# SPDX-License-Identifier: Apache-2.0
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

option(TENONNX_BUILD_TESTS "Build the tests" ON)
option(TENONNX_BUILD_BENCHES "Build the google-benchmark programs" OFF)
set(TENONNX_SANITIZE "" CACHE STRING "A -fsanitize= list, as address,undefined")
set(TENONNX_ONNXRUNTIME_ROOT "" CACHE PATH
    "Your own ONNX Runtime (include/ and lib/); found before the one of tools/setup.sh")
set(TENONNX_DEPS "" CACHE PATH "The prefix that tools/setup.sh filled (onnxruntime-VERSION/, onnx-VERSION/)")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers)
if(TENONNX_SANITIZE)
  add_compile_options(-fsanitize=${TENONNX_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TENONNX_SANITIZE})
endif()

find_program(TENONNX_CCACHE ccache)
if(TENONNX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without these it does not keep what was compiled with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${TENONNX_CCACHE})
endif()
