#include <gtest/gtest.h>

#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

// Numbers of the members of Model.Type in Core ML's specification.
constexpr int type_numbers[] = {200, 201, 202, 300,  301,  302,  303,  304,  400,  401,  402, 403, 404,
                                500, 501, 502, 555,  556,  560,  600,  601,  602,  603,  604, 606, 607,
                                609, 610, 900, 2000, 2001, 2002, 2003, 2004, 2005, 2006, 3000};

TEST(Types, EveryMemberDecodes) {
  static_assert(std::size(type_numbers) == 37);
  for (int number : type_numbers) {
    std::string spec = "\x08\x07";  // specificationVersion 7
    for (uint64_t key = static_cast<uint64_t>(number) << 3 | 2;; key >>= 7) {
      spec += static_cast<char>(key < 128 ? key : (key & 127) | 128);
      if (key < 128) break;
    }
    spec += '\0';
    auto file = open_model_bytes(Bytes::from(spec), {});
    ASSERT_TRUE(file.ok()) << number << ": " << file.error().to_string();
    EXPECT_EQ(static_cast<int>(file->spec().Type_case()), number);
    EXPECT_EQ(file->spec().specificationversion(), 7);
  }
}

TEST(Types, UnknownTypeIsNamed) {
  auto file = open_model_bytes(Bytes::from("\x08\x63"), {});
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().to_string().find("specification version 99"), std::string::npos);
}

TEST(Types, OtherFilesAreRecognised) {
  for (auto [bytes, what] : {std::pair("\x1f\x8b\x08", "gzip"), std::pair("PK\x03\x04", "zip"),
                             std::pair("version https://git-lfs.github.com/spec/v1", "LFS"), std::pair("", "empty")}) {
    auto file = open_model_bytes(Bytes::from(bytes), {});
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code(), ErrorCode::malformed);
    EXPECT_NE(file.error().to_string().find(what), std::string::npos) << file.error().to_string();
  }
}

}  // namespace
}  // namespace moka::format
