# SPDX-License-Identifier: Apache-2.0
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
# Debian puts OpenCVConfig.cmake into libopencv-dev, which brings all of OpenCV; core and imgproc alone
# are found by name.
find_path(TENONNX_OPENCV_INCLUDE opencv2/imgproc.hpp PATH_SUFFIXES opencv4 REQUIRED)
foreach(part core imgproc)
  find_library(TENONNX_OPENCV_${part} opencv_${part} REQUIRED)
  add_library(tenonnx_opencv_${part} INTERFACE)
  target_include_directories(tenonnx_opencv_${part} SYSTEM INTERFACE ${TENONNX_OPENCV_INCLUDE})
  target_link_libraries(tenonnx_opencv_${part} INTERFACE ${TENONNX_OPENCV_${part}})
endforeach()
# Vectors of every instruction set from one source.
find_library(TENONNX_HWY hwy REQUIRED)
find_path(TENONNX_HWY_INCLUDE hwy/highway.h REQUIRED)
add_library(tenonnx_hwy INTERFACE)
target_include_directories(tenonnx_hwy SYSTEM INTERFACE ${TENONNX_HWY_INCLUDE})
target_link_libraries(tenonnx_hwy INTERFACE ${TENONNX_HWY})
# Machines of this field have no SSSE3 without SSE4; AVX3_DL adds nothing that the kernels use; vectors
# of SVE have no size when a program is compiled, and NEON runs on the same boards.
target_compile_definitions(
  tenonnx_hwy
  INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
if(TENONNX_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(TENONNX_BUILD_BENCHES)
  find_package(benchmark REQUIRED)
endif()

if(NOT TENONNX_DEPS)
  set(deps_root $ENV{TENONNX_CACHE})
  if(NOT deps_root)
    set(deps_root $ENV{HOME}/.cache/tenonnx)
  endif()
  set(TENONNX_DEPS ${deps_root}/${CMAKE_SYSTEM_PROCESSOR})
endif()

# The Python of the tests, with numpy, Pillow, pycocotools and onnx (tools/setup.sh test). Its name
# carries the hash of its requirements.
if(TENONNX_BUILD_TESTS)
  set(requirements ${PROJECT_SOURCE_DIR}/tools/setup/requirements-test.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${requirements})
  file(SHA256 ${requirements} requirements_hash)
  string(SUBSTRING ${requirements_hash} 0 12 requirements_hash)
  set(TENONNX_TEST_PYTHON ${TENONNX_DEPS}/test-python-${requirements_hash}/bin/python3)
  if(NOT EXISTS ${TENONNX_TEST_PYTHON})
    message(WARNING "The tests that need Python packages will fail: run `tools/setup.sh test` for "
                    "${TENONNX_TEST_PYTHON}")
  endif()
endif()

# ONNX Runtime: only its headers are compiled against; the library is opened at run time.
add_library(tenonnx_ort_headers INTERFACE)
find_path(TENONNX_ORT_INCLUDE onnxruntime_cxx_api.h
          HINTS ${TENONNX_ONNXRUNTIME_ROOT}/include ${TENONNX_ONNXRUNTIME_ROOT}/include/onnxruntime
                ${TENONNX_DEPS}/onnxruntime-1.29.0/include
          REQUIRED)
find_library(TENONNX_ORT_LIBRARY NAMES libonnxruntime.so.1 onnxruntime
             HINTS ${TENONNX_ONNXRUNTIME_ROOT}/lib ${TENONNX_DEPS}/onnxruntime-1.29.0/lib REQUIRED)
target_include_directories(tenonnx_ort_headers SYSTEM INTERFACE ${TENONNX_ORT_INCLUDE})
target_compile_definitions(tenonnx_ort_headers INTERFACE ORT_API_MANUAL_INIT)

# onnx as static libraries. Its own package file wants Protobuf in CONFIG mode, which Debian 12 does
# not ship, so the exported targets are included directly.
# Protobuf is the shared one: Debian's archive is not compiled for a shared library, so libtenonnx.so
# could not take it in.
find_package(Protobuf REQUIRED)
find_path(TENONNX_ONNX_CMAKE ONNXTargets.cmake
          HINTS ${TENONNX_DEPS}/onnx-1.21.0/lib/cmake/ONNX REQUIRED)
include(${TENONNX_ONNX_CMAKE}/ONNXTargets.cmake)
add_library(tenonnx_onnx INTERFACE)
target_link_libraries(tenonnx_onnx INTERFACE ONNX::onnx ONNX::onnx_proto protobuf::libprotobuf)
get_target_property(onnx_include ONNX::onnx INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(tenonnx_onnx SYSTEM INTERFACE ${onnx_include})
