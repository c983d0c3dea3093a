// SPDX-License-Identifier: Apache-2.0
#include "format/archive/tar.h"

#include <gtest/gtest.h>

#include "format/format_util.h"

namespace moka::format {
namespace {

FileContents sample() {
  FileContents files;
  files["m.mlpackage/Manifest.json"] = Rope(Bytes::from("{}"));
  files["m.mlpackage/Data/" + std::string(120, 'n') + "/weight.bin"] = Rope(Bytes::from(std::string(5000, 'w')));
  files["m.mlpackage/empty"] = Rope(Bytes::from(""));
  files["m.mlpackage/512"] = Rope(Bytes::from(std::string(512, 'x')));
  return files;
}

std::string archive() { return std::string(write_tar(sample()).joined().text()); }

TEST(Tar, ReadsWhatItWrote) {
  const auto read = read_tar(Bytes::from(archive()));
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  const FileContents expected = sample();
  ASSERT_EQ(read->size(), expected.size());
  for (const auto& [name, content] : expected) EXPECT_EQ(read->at(name).text(), content.joined().text()) << name;
  EXPECT_EQ(archive(), archive());
}

TEST(Tar, ReadsAndWritesForTar) {
  test::TemporaryFolder folder;
  test::write_file(folder / "ours.tar", archive());
  const std::string in = "cd " + folder.path().string() + " && ";
  ASSERT_EQ(std::system((in + "tar xf ours.tar").c_str()), 0);
  for (const auto& [name, content] : sample()) EXPECT_EQ(test::read_file(folder / name), content.joined().text());
  for (const char* format : {"gnu", "ustar", "pax", "posix"}) {
    ASSERT_EQ(std::system((in + "tar cf theirs.tar --format=" + format + " m.mlpackage/512 m.mlpackage/Manifest.json" +
                           (std::string_view(format) == "ustar" ? "" : " m.mlpackage/Data"))
                              .c_str()),
              0);
    const auto read = read_tar(Bytes::from(test::read_file(folder / "theirs.tar")));
    ASSERT_TRUE(read.ok()) << format << ": " << read.error().to_string();
    EXPECT_EQ(read->at("m.mlpackage/512").text(), std::string(512, 'x'));
    if (std::string_view(format) != "ustar") {
      EXPECT_EQ(read->at("m.mlpackage/Data/" + std::string(120, 'n') + "/weight.bin").size(), 5000u);
    }
  }
}

TEST(Tar, RefusesLinksNamesThatLeaveAndDamage) {
  test::TemporaryFolder folder;
  const std::string in = "cd " + folder.path().string() + " && ";
  ASSERT_EQ(std::system((in + "ln -s /etc/passwd link && tar cf link.tar link && touch a && tar cf up.tar -P "
                              "--transform 's,^,../,' a && tar cf twice.tar a a --hard-dereference")
                            .c_str()),
            0);
  const auto code = [&](const char* name) {
    const auto read = read_tar(Bytes::from(test::read_file(folder / name)));
    return read.ok() ? ErrorCode::internal : read.error().code();
  };
  EXPECT_EQ(code("link.tar"), ErrorCode::unsupported);
  EXPECT_EQ(code("up.tar"), ErrorCode::malformed);
  EXPECT_EQ(code("twice.tar"), ErrorCode::malformed);
  const std::string whole = archive();
  for (size_t size = 0; size + 1024 <= whole.size(); size += 128)
    EXPECT_FALSE(read_tar(Bytes::from(whole.substr(0, size))).ok()) << size;
  for (size_t at = 0; at < 512; ++at) {
    if (at == 155) continue;  // the last byte of the checksum's field, after its end
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(read_tar(Bytes::from(bad)).ok()) << at;
  }
}

}  // namespace
}  // namespace moka::format
