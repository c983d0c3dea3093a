// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace moka {
namespace {

// The examples of chapter 3.9 of the Unicode Standard, and the ends of every range.
TEST(Utf8, WellFormed) {
  for (const char* text : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
                           "Gr\xc3\xbc\xc3\x9f"
                           "e"})
    EXPECT_TRUE(is_utf8(text)) << text;
}

TEST(Utf8, IllFormed) {
  for (const char* text : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xed\xa0\x80",
                           "\xe1\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe2\x82"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

TEST(Utf8, ShortenedTextEndsWithAWholeCharacter) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc\u2026");
  EXPECT_EQ(shortened("ab\u00fcd", 3, "..."), "ab...");
  EXPECT_EQ(shortened("a\u00fcd", 3, "..."), "a\u00fc...");
  EXPECT_EQ(shortened("\U0001f600\U0001f600", 7, ""), "\U0001f600");
  EXPECT_EQ(shortened("\u00fc", 1, "..."), "...");
  EXPECT_EQ(shortened("\u00fc", 0, "..."), "...");
  EXPECT_EQ(shortened("\xbf\xbf\xbf\xbf\xbf\xbf", 5, ""), "\xbf\xbf");
}

}  // namespace
}  // namespace moka
