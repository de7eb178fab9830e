# SPDX-License-Identifier: Apache-2.0
# Cross-compiling for aarch64 Linux with Debian's compiler; the libraries come from the sysroot that
# `tools/setup.sh aarch64` unpacks into the cache.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(aarch64_cache $ENV{TENONNX_CACHE})
if(NOT aarch64_cache)
  set(aarch64_cache $ENV{HOME}/.cache/tenonnx)
endif()
set(aarch64_sysroot ${aarch64_cache}/aarch64/sysroot)

# Not CMAKE_SYSROOT: the compiler's own libc and libstdc++ lie outside of it.
set(CMAKE_FIND_ROOT_PATH ${aarch64_sysroot} ${aarch64_cache}/aarch64)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(Protobuf_PROTOC_EXECUTABLE /usr/bin/protoc CACHE FILEPATH "The host's own")
# A native compiler looks into the headers of its architecture by itself.
# -Wno-psabi: a note about GCC before 10.1, which no one mixes in here.
set(CMAKE_CXX_FLAGS_INIT "-Wno-psabi -isystem ${aarch64_sysroot}/usr/include/aarch64-linux-gnu")
# Where the libraries that our libraries need are found when linking.
foreach(dir usr/lib/aarch64-linux-gnu lib/aarch64-linux-gnu)
  string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,-rpath-link,${aarch64_sysroot}/${dir}")
  string(APPEND CMAKE_SHARED_LINKER_FLAGS_INIT " -Wl,-rpath-link,${aarch64_sysroot}/${dir}")
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/bin/qemu-aarch64 -L ${aarch64_sysroot})
