// SPDX-License-Identifier: Apache-2.0
#include "io/table.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "io/io_error.h"
#include "io/utf8.h"

namespace moka::io {
namespace {

TEST(Width, TerminalCells) {
  EXPECT_EQ(display_width("plain"), 5u);
  EXPECT_EQ(display_width("caf\u00e9"), 4u);
  EXPECT_EQ(display_width("cafe\u0301"), 4u);
  EXPECT_EQ(display_width("\u4e2d\u6587"), 4u);
  EXPECT_EQ(display_width("\U0001F600!"), 3u);
  EXPECT_EQ(display_width("\x1b[31mred\x1b[0m"), 3u);
  EXPECT_EQ(display_width("\xff\xc3"), 2u);
}

TEST(Utf8, BadBytesAreReplaced) {
  EXPECT_EQ(decode_utf8("a\xc0\x80z"), (std::vector<char32_t>{'a', 0xfffd, 0xfffd, 'z'}));
  EXPECT_EQ(decode_utf8("\xed\xa0\x80").front(), 0xfffdu);
  std::string text;
  EXPECT_FALSE(append_utf8(text, 0xd800));
  EXPECT_FALSE(append_utf8(text, 0x110000));
  EXPECT_TRUE(append_utf8(text, 0x20ac));
  EXPECT_EQ(text, "\u20ac");
}

TEST(Table, NumbersGoRight) {
  Table table({"name", "ms", "kind"});
  table.add_row({"conv", "12.5", "cpu"});
  table.add_row({"\u4e2d\u6587", "-3", ""});
  table.add_rule();
  table.add_row({"all", "9.5 ms"});
  EXPECT_EQ(table.render(),
            "name      ms  kind\n"
            "────  ──────  ────\n"
            "conv    12.5  cpu\n"
            "中文      -3\n"
            "────  ──────  ────\n"
            "all   9.5 ms\n");
}

TEST(Table, ShapesAndWordsGoLeftUnlessTold) {
  Table table({"shape", "n"}, {Align::automatic, Align::left});
  table.add_row({"1x3", "1"});
  table.add_row({"10x3x5", "20"});
  EXPECT_EQ(table.render(), "shape   n\n──────  ──\n1x3     1\n10x3x5  20\n");
  EXPECT_THROW(table.add_row({"a", "b", "c"}), IoError);
}

TEST(Table, LongTextsWithoutRoomStandBelowTheirRows) {
  Table table({{"operation", Shrink::middle}, {"time", Align::right}, {"refused by", Shrink::wrap}});
  table.add_row({"convolution_1", "3.1 ms", "gpu: a kernel of eleven by eleven"});
  table.add_row({"relu_1", "1 ms", ""});
  EXPECT_EQ(table.render(false, 60).find("convolution_1  3.1 ms  gpu: "),
            table.render(false, 60).find("convolution_1"));
  EXPECT_EQ(table.render(false, 32),
            "operation        time\n"
            "─────────────  ──────\n"
            "convolution_1  3.1 ms\n"
            "    refused by: gpu: a kernel of\n"
            "    eleven by eleven\n"
            "relu_1           1 ms\n");
}

TEST(Table, ColorOnlyWhenAsked) {
  Table table({"a"});
  table.add_row({"b"});
  EXPECT_EQ(table.render(false).find('\x1b'), std::string::npos);
  EXPECT_NE(table.render(true).find("\x1b[1ma\x1b[0m"), std::string::npos);
  EXPECT_EQ(painted("x", Color::red, false), "x");
}

TEST(Table, AFileIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(use_color(file));
  std::fclose(file);
}

TEST(Progress, Line) {
  EXPECT_EQ(Progress::line("Predicting", 5, 20, 2.0), "Predicting  [#####---------------]  25%  6 s left");
  EXPECT_EQ(Progress::line("Predicting", 20, 20, 2.0), "Predicting  [####################]  100%");
  EXPECT_EQ(Progress::line("Reading", 7, 0, 2.0), "Reading  7");
}

}  // namespace
}  // namespace moka::io
