# SPDX-License-Identifier: Apache-2.0
# libtenonnx.so, what `cmake --install` copies, and the CMake package tenonnx::tenonnx.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Where the build's own files lie. Installed, both are looked for beside the command or the library
# first (src/ort, src/device), so these paths are the last resort.
function(tenonnx_default module name value)
  get_target_property(type tenonnx_${module} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    target_compile_definitions(tenonnx_${module} PRIVATE ${name}="${value}")
  endif()
endfunction()
tenonnx_default(ort TENONNX_DEFAULT_ORT_LIBRARY ${TENONNX_ORT_LIBRARY})
tenonnx_default(device TENONNX_DEFAULT_DEVICES_DIR ${PROJECT_SOURCE_DIR}/devices)

# All modules in one library. Their objects are taken, not their archives: --exclude-libs hides what
# comes from an archive, which is meant for third parties.
add_library(tenonnx_shared SHARED)
get_property(modules GLOBAL PROPERTY TENONNX_MODULES)
foreach(module ${modules})
  get_target_property(type ${module} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_sources(tenonnx_shared PRIVATE $<TARGET_OBJECTS:${module}>)
  endif()
endforeach()
# The libraries below the modules; the modules themselves are in already.
get_property(below GLOBAL PROPERTY TENONNX_THIRD_PARTY)
list(REMOVE_DUPLICATES below)
target_link_libraries(tenonnx_shared PRIVATE ${below})
target_include_directories(tenonnx_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                                    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_features(tenonnx_shared INTERFACE cxx_std_20)
target_link_options(tenonnx_shared PRIVATE -Wl,--exclude-libs,ALL
                    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/tenonnx.map)
# Before 1.0 a minor version may change the binary interface, so it is part of the SONAME.
set_target_properties(
  tenonnx_shared
  PROPERTIES OUTPUT_NAME tenonnx EXPORT_NAME tenonnx LINKER_LANGUAGE CXX
             VERSION ${PROJECT_VERSION}
             SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
             LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/tenonnx.map)
add_library(tenonnx::tenonnx ALIAS tenonnx_shared)

# What an engineer uses, without the tests: `cmake --build build --target product`.
add_custom_target(product DEPENDS tenonnx tenonnx_shared tenonnx_simnpu tenonnx_ops)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tenonnx)
set_target_properties(tenonnx PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
install(TARGETS tenonnx RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS tenonnx_shared EXPORT tenonnxTargets DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tenonnx_simnpu tenonnx_ops LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tenonnx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY devices/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tenonnx/devices
        FILES_MATCHING PATTERN "*.json")
install(EXPORT tenonnxTargets NAMESPACE tenonnx:: DESTINATION ${package_dir})
configure_package_config_file(cmake/tenonnxConfig.cmake.in tenonnxConfig.cmake
                              INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(tenonnxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tenonnxConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tenonnxConfigVersion.cmake DESTINATION ${package_dir})
# The ONNX Runtime that tools/setup.sh fetched goes along, beside the library, where it is looked for
# first; one of your own (-DTENONNX_ONNXRUNTIME_ROOT) stays where it is.
cmake_path(IS_PREFIX TENONNX_DEPS "${TENONNX_ORT_LIBRARY}" NORMALIZE TENONNX_ORT_FETCHED)
if(TENONNX_ORT_FETCHED)
  file(REAL_PATH ${TENONNX_ORT_LIBRARY} ort_file)
  cmake_path(GET ort_file PARENT_PATH ort_dir)
  install(FILES ${ort_file} DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME libonnxruntime.so.1)
  install(FILES ${ort_dir}/../LICENSE ${ort_dir}/../ThirdPartyNotices.txt
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/onnxruntime OPTIONAL)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/LICENSE)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
