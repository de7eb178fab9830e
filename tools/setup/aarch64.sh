# SPDX-License-Identifier: Apache-2.0
# Sourced by tools/setup.sh: what cross-compiling for aarch64 takes. The arm64 libraries are not
# installed, since dpkg would have to bring both architectures of what is installed to one version, but
# unpacked into a directory of the cache, to which the compiler, CMake and qemu are pointed.

aarch64_packages=(libprotobuf-dev libhwy-dev libcli11-dev nlohmann-json3-dev libfmt-dev libspdlog-dev
                  libssl-dev libopencv-core-dev libopencv-imgproc-dev libjpeg62-turbo-dev libpng-dev
                  libmimalloc-dev zlib1g-dev libstdc++6)
# The compiler brings its own headers of libc and of the kernel, which must not be found twice.
aarch64_left_out='^(libc6-dev|libc-dev-bin|linux-libc-dev|libcrypt-dev)_'

aarch64_tasks() {
  complete ../aarch64/sysroot || echo aarch64_sysroot
  complete "../aarch64/onnxruntime-$ORT_VERSION" || echo aarch64_onnxruntime
  complete "../aarch64/onnx-$ONNX_VERSION" || echo aarch64_onnx
}

aarch64_sysroot() {
  mkdir -p "$cache/aarch64"
  step "$logs/aarch64-sysroot.log" "unpacking the arm64 libraries" fetch_sysroot
}
aarch64_onnxruntime() {
  step "$logs/aarch64-onnxruntime.log" "fetching ONNX Runtime $ORT_VERSION for aarch64" \
    fetch_onnxruntime aarch64
}
aarch64_onnx() {
  step "$logs/aarch64-onnx.log" "building onnx $ONNX_VERSION for aarch64" build_onnx aarch64 \
    "-DCMAKE_TOOLCHAIN_FILE=$setup_dir/../../cmake/aarch64.cmake" \
    -DONNX_CUSTOM_PROTOC_EXECUTABLE=/usr/bin/protoc
}

fetch_sysroot() {
  local work out apt archive libraries
  work=$(work_directory)
  trap "rm -rf '$work'" EXIT
  out=$work/out
  mkdir -p "$out/proc" "$work/lists/partial" "$work/cache/archives/partial"
  touch "$work/status"
  # apt with a state of its own: it resolves and verifies as usual, on an arm64 machine with nothing
  # installed, and leaves this one alone.
  apt=(apt-get -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o "Dir::State=$work"
       -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" -o "APT::Sandbox::User="
       -o Debug::NoLocking=1 -o "APT::Update::Post-Invoke-Success::=" -o "DPkg::Post-Invoke::=")
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends --download-only "${aarch64_packages[@]}"
  for archive in "$work"/cache/archives/*.deb; do
    basename "$archive" | grep -q -E "$aarch64_left_out" || dpkg-deb -x "$archive" "$out"
  done
  libraries=usr/lib/aarch64-linux-gnu
  # What update-alternatives would do.
  ln -s blas/libblas.so.3 "$out/$libraries/libblas.so.3"
  ln -s lapack/liblapack.so.3 "$out/$libraries/liblapack.so.3"
  # qemu-user 7.2 passes the host's /proc/cpuinfo through, and the cpuinfo library in ONNX Runtime
  # crashes on the text of another architecture; a file in the sysroot is used in its place.
  for processor in 0 1; do
    printf '%s\n' "processor	: $processor" "BogoMIPS	: 50.00" \
      "Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid" "CPU implementer	: 0x41" \
      "CPU architecture: 8" "CPU variant	: 0x0" "CPU part	: 0xd08" "CPU revision	: 3" ""
  done >"$out/proc/cpuinfo"
  publish "$out" ../aarch64/sysroot
}
