# SPDX-License-Identifier: Apache-2.0
# tenonnx_precompiled(TARGET)   for libraries and programs that see onnx
# tenonnx_precompiled_test(TARGET)   for programs with GoogleTest too
#
# Reading onnx, fmt, json and GoogleTest takes 3.2 of the 4.3 s in which a pass is compiled, and 4.0 of a
# test's 6.2 s. Precompiled, a test takes 3.6 s. Only headers that are not ours are in it, so that a change
# of ours makes nothing of it anew. Other presets than release do without: there a file that forgets an
# include does not compile.
option(TENONNX_PCH "Precompile the headers of libraries that most files include" OFF)
function(tenonnx_precompiled target)
endfunction()
function(tenonnx_precompiled_test target)
endfunction()
if(NOT TENONNX_PCH)
  return()
endif()

set(headers
    <algorithm> <array> <chrono> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory> <optional>
    <set> <span> <string> <string_view> <unordered_map> <unordered_set> <utility> <vector> <fmt/format.h>
    <nlohmann/json.hpp> <onnx/onnx_pb.h>)
set(nothing ${CMAKE_BINARY_DIR}/generated/nothing.cc)
if(NOT EXISTS ${nothing})
  file(WRITE ${nothing} "int main() { return 0; }\n")
endif()

# With the flags of a library and with those of a program: a precompiled header serves one of them.
add_library(tenonnx_library_headers OBJECT ${nothing})
add_executable(tenonnx_test_headers ${nothing})
foreach(target tenonnx_library_headers tenonnx_test_headers)
  target_link_libraries(${target} PRIVATE tenonnx_onnx fmt::fmt nlohmann_json::nlohmann_json)
  target_precompile_headers(${target} PRIVATE ${headers})
endforeach()
function(tenonnx_precompiled target)
  target_precompile_headers(${target} REUSE_FROM tenonnx_library_headers)
endfunction()
if(TENONNX_BUILD_TESTS)
  target_link_libraries(tenonnx_test_headers PRIVATE GTest::gmock GTest::gtest)
  target_precompile_headers(tenonnx_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  function(tenonnx_precompiled_test target)
    target_precompile_headers(${target} REUSE_FROM tenonnx_test_headers)
  endfunction()
endif()
