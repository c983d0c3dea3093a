// SPDX-License-Identifier: Apache-2.0
#include "io/csv.h"

#include <gtest/gtest.h>

#include <random>

#include "io/file.h"
#include "io/io_error.h"

namespace moka::io {
namespace {

using Row = std::vector<std::string>;

TEST(Csv, PlainAndQuoted) {
  const Csv csv = parse_csv(
      "\xef\xbb\xbfname,\"size, in cm\",note\r\nA,1.5,\"said \"\"no\"\"\"\r\n,\"two\nlines\",\n\n\"x\",,\"\"", "a.csv");
  EXPECT_EQ(csv.header, (Row{"name", "size, in cm", "note"}));
  ASSERT_EQ(csv.rows.size(), 3u);
  EXPECT_EQ(csv.rows[0], (Row{"A", "1.5", "said \"no\""}));
  EXPECT_EQ(csv.rows[1], (Row{"", "two\nlines", ""}));
  EXPECT_EQ(csv.rows[2], (Row{"x", "", ""}));
  EXPECT_EQ(csv.column("note"), 2u);
  EXPECT_FALSE(csv.column("nope"));
}

TEST(Csv, OneColumnKeepsEmptyLines) {
  EXPECT_EQ(parse_csv("text\nhello\n\nworld\n", "b.csv").rows, (std::vector<Row>{{"hello"}, {""}, {"world"}}));
}

TEST(Csv, WrittenFieldsComeBack) {
  for (const char* text : {"plain", "a,b", "say \"hi\"", "line\nbreak", "", " spaces "}) {
    const Csv csv = parse_csv("h,i\n" + csv_field(text) + "," + csv_field(text) + "\n", "c.csv");
    ASSERT_EQ(csv.rows.size(), 1u);
    EXPECT_EQ(csv.rows[0], (Row{text, text}));
  }
}

std::string message_of(std::string_view text) {
  try {
    parse_csv(text, "d.csv");
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Csv, ErrorsNameTheLine) {
  EXPECT_EQ(message_of("a,b\n1,2\n3\n"), "d.csv: line 3: expected 2 fields as in the header, got 1");
  EXPECT_EQ(message_of("a,b\n\"1\n\n,2\n"), "d.csv: line 2: expected a closing quote, got the end of the file");
  EXPECT_EQ(message_of("a,b\n\"1\"x,2\n"),
            "d.csv: line 2: expected a comma or the end of the line after a quoted field, got 'x'");
  EXPECT_EQ(message_of("a,b\n1\"2,2\n"), "d.csv: line 2: expected quotes only around a whole field, got one inside");
  EXPECT_EQ(message_of(""), "d.csv: expected a header line, got an empty file");
}

/// A damaged table may still be one. Otherwise the error must be an IoError.
TEST(Csv, DamageIsAnErrorOrAnotherTable) {
  const std::string good = "a,\"b\"\r\n1,\"x\"\"y\"\n\"2\n\",z\n";
  const auto read = [](const std::string& text) {
    try {
      parse_csv(text, "bad");
    } catch (const IoError&) {
    }
  };
  for (size_t length = 0; length < good.size(); ++length) read(good.substr(0, length));
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (int i = static_cast<int>(random() % 4); i >= 0; --i) bad[random() % bad.size()] ^= 1 << (random() % 8);
    read(bad);
  }
}

TEST(Csv, MissingFilesAreErrors) {
  EXPECT_THROW(read_csv("no/such/file.csv"), IoError);
  EXPECT_THROW(write_file("no/such/folder/file", {}), IoError);
}

}  // namespace
}  // namespace moka::io
