// SPDX-License-Identifier: Apache-2.0
#include "io/line.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "io/table.h"
#include "io/utf8.h"

namespace moka::io {
namespace {

using Lines = std::vector<std::string>;

TEST(Line, CutsAtTheEndOrInTheMiddle) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 4), "abc…");
  EXPECT_EQ(middle_shortened("abcdefghij", 7), "ab…ghij");
  for (size_t cells : {4u, 5u, 9u}) EXPECT_LE(display_width(middle_shortened("中文中文中文中文", cells)), cells);
}

TEST(Line, WrapsAtSpaces) {
  EXPECT_EQ(wrapped("one two three", 80), Lines{"one two three"});
  EXPECT_EQ(wrapped("one two three", 8), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("one  two", 4), (Lines{"one", "two"}));
  EXPECT_EQ(wrapped("", 4), Lines{""});
}

TEST(Line, WrapsWordsThatAreTooLong) {
  EXPECT_EQ(wrapped("abcdefgh", 3), (Lines{"abc", "def", "gh"}));
  EXPECT_EQ(wrapped("x abcdefgh y", 4), (Lines{"x", "abcd", "efgh", "y"}));
  std::string all;
  for (const std::string& line : wrapped("中文中文 a", 3)) {
    EXPECT_LE(display_width(line), 3u);
    all += line;
  }
  EXPECT_EQ(all, "中文中文a");
}

TEST(Line, TheWidestGiveMost) {
  const ColumnWidth columns[] = {{4, 4, Shrink::keep}, {60, 12, Shrink::middle}, {30, 12, Shrink::end}};
  EXPECT_EQ(fitted(columns, 2, kAnyWidth), (std::vector<size_t>{4, 60, 30}));
  EXPECT_EQ(fitted(columns, 2, 80), (std::vector<size_t>{4, 42, 30}));
  EXPECT_EQ(fitted(columns, 2, 60), (std::vector<size_t>{4, 26, 26}));
  EXPECT_EQ(fitted(columns, 2, 10), (std::vector<size_t>{4, 12, 12}));
}

TEST(Line, ColumnsAreLeftOutBeforeNamesBecomeShort) {
  const ColumnWidth columns[] = {{50, 12, Shrink::middle}, {10, 10, Shrink::drop}, {16, 12, Shrink::drop}};
  EXPECT_EQ(fitted(columns, 2, 80), (std::vector<size_t>{50, 10, 16}));
  EXPECT_EQ(fitted(columns, 2, 60), (std::vector<size_t>{30, 10, 16}));
  EXPECT_EQ(fitted(columns, 2, 40), (std::vector<size_t>{28, 10, 0}));
  EXPECT_EQ(fitted(columns, 2, 30), (std::vector<size_t>{30, 0, 0}));
}

TEST(Line, AFileHasAnyWidth) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(line_width(file), kAnyWidth);
  std::fclose(file);
}

TEST(Line, TablesTakeSeveralLines) {
  Table table({{"name", Shrink::middle}, {"n", Align::right}, {"why", Shrink::wrap}, {"bar", Shrink::drop}});
  table.add_row({"a_name_that_is_rather_long", "1", "because of this and that and more", "####"});
  EXPECT_EQ(table.render(false, 50),
            "name                 n  why                   bar\n"
            "───────────────────  ─  ────────────────────  ────\n"
            "a_name…_rather_long  1  because of this and   ####\n"
            "                        that and more\n");
}

}  // namespace
}  // namespace moka::io
