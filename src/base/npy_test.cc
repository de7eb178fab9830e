// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <random>

#include "base/files.h"
#include "base/temporary_directory.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

// What numpy.save(numpy.array([[1, 2, 3]], '<i2')) writes (NumPy 1.26).
std::string numpy_file() {
  std::string out("\x93NUMPY\x01\x00\x76\x00", 10);
  std::string dict = "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 3), }";
  dict.resize(0x75, ' ');
  return out + dict + "\n" + std::string("\1\0\2\0\3\0", 6);
}

std::string with_header(const std::string& dict, const std::string& data) {
  std::string out("\x93NUMPY\x02\x00", 8);
  const auto n = static_cast<std::uint32_t>(dict.size());
  out.append(reinterpret_cast<const char*>(&n), 4);
  return out + dict + data;
}

void expect_equal(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::string_view(a.data<char>(), a.bytes()),
            std::string_view(b.data<char>(), b.bytes()));
}

TEST(Npy, ReadsAndWritesWhatNumpyWrites) {
  const auto tensor = parse_npy(numpy_file(), "t");
  ASSERT_TRUE(tensor.ok());
  expect_equal(*tensor, Tensor::from<std::int16_t>(DType::kInt16, {1, 3}, {1, 2, 3}));
  const TemporaryDirectory dir;
  ASSERT_TRUE(write_npy(dir.path() / "a.npy", *tensor).ok());
  EXPECT_EQ(*read_file(dir.path() / "a.npy"), numpy_file());
}

TEST(Npy, EveryDTypeAndShapeSurvives) {
  const TemporaryDirectory dir;
  std::mt19937 random(1);
  TensorMap all;
  for (int d = 1; d <= static_cast<int>(DType::kBool); ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3, 4}}) {
      Tensor t(dtype, shape);
      for (std::size_t i = 0; i < t.bytes(); ++i)
        t.mutable_data<unsigned char>()[i] = static_cast<unsigned char>(random() & 1);
      all["m/" + std::string(to_string(dtype)) + to_string(shape)] = t;
      if (dtype == DType::kBFloat16) continue;
      ASSERT_TRUE(write_npy(dir.path() / "t.npy", t).ok());
      const auto back = read_npy(dir.path() / "t.npy");
      ASSERT_TRUE(back.ok()) << back.status().message();
      expect_equal(*back, t);
    }
  }
  ASSERT_TRUE(write_npz(dir.path() / "all.npz", all).ok());
  const auto back = read_npz(dir.path() / "all.npz");
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->size(), all.size());
  for (const auto& [name, tensor] : all) expect_equal(back->at(name), tensor);
}

TEST(Npy, ErrorsSayWhatIsWrong) {
  const std::string f4 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_TRUE(parse_npy(with_header(f4, "12345678"), "t").ok());
  const auto message = [](const std::string& bytes) {
    return parse_npy(bytes, "x.npy").status().message();
  };
  EXPECT_THAT(message("PK"), HasSubstr("x.npy: not an .npy file"));
  EXPECT_THAT(message(with_header(f4, "1234567")), HasSubstr("float32 [2] against 7 bytes"));
  EXPECT_THAT(
      message(with_header("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "1234")),
      HasSubstr("'>f4' is not read"));
  EXPECT_THAT(message(with_header("{'descr': '|O', 'fortran_order': False, 'shape': ()}", "")),
              HasSubstr("'|O' is not read"));
  EXPECT_THAT(
      message(with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (1,1)}", "1234")),
      HasSubstr("ascontiguousarray"));
  EXPECT_THAT(message(with_header("{'descr': [('a','<f4')], 'fortran_order': False}", "")),
              HasSubstr("header is not a dict"));
  // 2^62 elements of 4 bytes: the byte count overflows 64 bits.
  EXPECT_THAT(message(with_header(
                  "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}", "")),
              HasSubstr("against 0 bytes"));
  EXPECT_FALSE(
      parse_npy(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", ""), "t")
          .ok());
  const std::string good = numpy_file();
  for (std::size_t n = 0; n < good.size(); ++n)
    EXPECT_FALSE(parse_npy(good.substr(0, n), "t").ok());
  const TemporaryDirectory dir;
  EXPECT_THAT(write_npy(dir.path() / "b.npy", Tensor(DType::kBFloat16, {1})).message(),
              HasSubstr("no bfloat16"));
  EXPECT_FALSE(write_npy(dir.path() / "u.npy", Tensor()).ok());
}

// A zip with one deflated entry, built here from the format's description.
std::string deflated_npz(const std::string& npy, std::uint32_t claimed_size) {
  std::string packed(compressBound(npy.size()) + 64, '\0');
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(npy.data()));
  z.avail_in = static_cast<uInt>(npy.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  const auto le = [](std::uint64_t value, int n) {
    return std::string(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(n));
  };
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(npy.data()), static_cast<uInt>(npy.size()));
  const std::string common = le(20, 2) + le(0, 2) + le(8, 2) + le(0, 4) + le(crc, 4) +
                             le(packed.size(), 4) + le(claimed_size, 4) + le(5, 2) + le(0, 2);
  const std::string local = "PK\3\4" + common + "x.npy" + packed;
  const std::string central = "PK\1\2" + le(20, 2) + common + std::string(14, '\0') + "x.npy";
  return local + central + "PK\5\6" + le(0, 4) + le(1, 2) + le(1, 2) + le(central.size(), 4) +
         le(local.size(), 4) + le(0, 2);
}

TEST(Npz, ReadsDeflatedEntries) {
  const TemporaryDirectory dir;
  const std::string npy = numpy_file();
  const auto read = [&](const std::string& zip) {
    std::ofstream(dir.path() / "z.npz", std::ios::binary) << zip;
    return read_npz(dir.path() / "z.npz");
  };
  const auto good = read(deflated_npz(npy, static_cast<std::uint32_t>(npy.size())));
  ASSERT_TRUE(good.ok()) << good.status().message();
  expect_equal(good->at("x"), *parse_npy(npy, "t"));
  EXPECT_THAT(
      read(deflated_npz(npy, static_cast<std::uint32_t>(npy.size()) - 1)).status().message(),
      HasSubstr("damaged"));
  EXPECT_THAT(read(deflated_npz(npy, 0xFFFFFFF0)).status().message(), HasSubstr("cannot come out"));
}

// Any changed byte of a small file is an error or another valid reading, never a crash.
TEST(Npz, DamagedFilesAreRefused) {
  const TemporaryDirectory dir;
  const auto path = dir.path() / "z.npz";
  ASSERT_TRUE(write_npz(path, {{"a", Tensor::from<float>(DType::kFloat32, {2}, {1, 2})},
                               {"b", Tensor(DType::kBFloat16, {3})}})
                  .ok());
  const std::string good = *read_file(path);
  // Removed first: ext4 flushes a file that was truncated and written, which is slow.
  const auto rewrite = [&](const std::string& bytes) {
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    rewrite(bad);
    const auto result = read_npz(path);
    if (!result.ok()) {
      EXPECT_THAT(result.status().message(), HasSubstr("z.npz"));
    }
    rewrite(good.substr(0, i));
    EXPECT_FALSE(read_npz(path).ok()) << i;
  }
  // One byte of the data: the checksum tells.
  std::string bad = good;
  bad[bad.find("\x3f")] = 0x3e;
  rewrite(bad);
  EXPECT_THAT(read_npz(path).status().message(), HasSubstr("checksum"));
}

TEST(NpzFile, ReadsOneArray) {
  const TemporaryDirectory dir;
  const auto path = dir.path() / "z.npz";
  const Tensor a = Tensor::from<float>(DType::kFloat32, {2}, {1, 2});
  Tensor b(DType::kBFloat16, {3});
  b.mutable_data<std::uint16_t>()[1] = 0x3F80;
  ASSERT_TRUE(write_npz(path, {{"/a/Add", a}, {"b", b}}).ok());
  const auto file = NpzFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->names(), (std::vector<std::string>{"/a/Add", "b"}));
  EXPECT_TRUE(file->has("b"));
  EXPECT_FALSE(file->has("b.bfloat16"));
  const auto read = file->read("b");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->dtype(), DType::kBFloat16);
  EXPECT_EQ(read->data<std::uint16_t>()[1], 0x3F80);
  EXPECT_EQ(file->read("c").status().code(), StatusCode::kNotFound);
  // The fingerprint is that of the content.
  const std::string before = file->fingerprint();
  EXPECT_EQ(NpzFile::open(path)->fingerprint(), before);
  b.mutable_data<std::uint16_t>()[1] = 0x3F81;
  ASSERT_TRUE(write_npz(path, {{"/a/Add", a}, {"b", b}}).ok());
  EXPECT_NE(NpzFile::open(path)->fingerprint(), before);
}

}  // namespace
}  // namespace tenonnx
