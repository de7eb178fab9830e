# SPDX-License-Identifier: Apache-2.0
add_executable(manifest_fuzz_test ${CMAKE_CURRENT_LIST_DIR}/manifest_fuzz_test.cc)
target_link_libraries(manifest_fuzz_test PRIVATE tenonnx_package tenonnx_test_support GTest::gtest
                                                 GTest::gtest_main)
add_test(NAME fuzz_manifest COMMAND manifest_fuzz_test)
set_tests_properties(fuzz_manifest PROPERTIES TIMEOUT 300)
add_test(NAME fuzz_manifest_20000 COMMAND manifest_fuzz_test)
set_tests_properties(fuzz_manifest_20000 PROPERTIES LABELS slow TIMEOUT 3600 ENVIRONMENT
                                                    "TENONNX_FUZZ_SEEDS=20000")
