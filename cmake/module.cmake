# SPDX-License-Identifier: Apache-2.0
# tenonnx_module(NAME [USES module...] [LINK target...])
# A folder under src/ is a module: every *.cc below it belongs to the static library tenonnx_NAME,
# every *_test.cc to the program NAME_test, every *_bench.cc to NAME_bench. A new file needs no line
# here.
function(tenonnx_module name)
  cmake_parse_arguments(ARG "" "" "USES;LINK" ${ARGN})
  set(dir ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(benches ${all})
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  if(NOT sources)
    add_library(tenonnx_${name} INTERFACE)
    set(scope INTERFACE)
  else()
    add_library(tenonnx_${name} STATIC ${sources})
    set(scope PUBLIC)
  endif()
  target_include_directories(tenonnx_${name} ${scope} ${PROJECT_SOURCE_DIR}/src
                                                      ${PROJECT_SOURCE_DIR}/include)
  foreach(used ${ARG_USES})
    target_link_libraries(tenonnx_${name} ${scope} tenonnx_${used})
  endforeach()
  target_link_libraries(tenonnx_${name} ${scope} ${ARG_LINK})
  if("model" IN_LIST ARG_USES OR "tenonnx_onnx" IN_LIST ARG_LINK)
    set(sees_onnx TRUE)
  endif()
  if(sees_onnx AND sources)
    tenonnx_precompiled(tenonnx_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY TENONNX_MODULES tenonnx_${name})
  set_property(GLOBAL APPEND PROPERTY TENONNX_THIRD_PARTY ${ARG_LINK})
  if(TENONNX_BUILD_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE tenonnx_${name} tenonnx_test_support GTest::gmock
                                               GTest::gtest GTest::gtest_main)
    # Nothing is gained by making a test itself fast: -O3 takes a quarter more time to compile it.
    target_compile_options(${name}_test PRIVATE $<$<CONFIG:Release>:-O1>)
    if(sees_onnx)
      tenonnx_precompiled_test(${name}_test)
    endif()
    # A test with Slow in its name, as TEST(SearchSlow, Exhaustive), gets the label slow, which
    # `./dev test` leaves out.
    gtest_discover_tests(
      ${name}_test TEST_FILTER "-*Slow*" TEST_LIST ${name}_tests DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS unit TIMEOUT 300)
    gtest_discover_tests(
      ${name}_test TEST_FILTER "*Slow*" TEST_LIST ${name}_slow_tests DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS slow TIMEOUT 3600)
  endif()
  if(TENONNX_BUILD_BENCHES AND benches)
    add_executable(${name}_bench EXCLUDE_FROM_ALL ${benches})
    add_dependencies(benches ${name}_bench)
    target_link_libraries(${name}_bench PRIVATE tenonnx_${name} benchmark::benchmark_main)
  endif()
endfunction()

if(TENONNX_BUILD_BENCHES)
  add_custom_target(benches)
endif()
if(TENONNX_BUILD_TESTS)
  include(GoogleTest)
  # Where tests find what they need: paths of this build, never of an installed tree.
  add_library(tenonnx_test_support INTERFACE)
  target_compile_definitions(
    tenonnx_test_support
    INTERFACE TENONNX_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
              TENONNX_TEST_BINARY_DIR="${CMAKE_BINARY_DIR}"
              TENONNX_TEST_ORT_LIBRARY="${TENONNX_ORT_LIBRARY}"
              TENONNX_TEST_PYTHON="${TENONNX_TEST_PYTHON}")
endif()
