// SPDX-License-Identifier: Apache-2.0
#include "tar_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>

#include "io/io_error.h"

namespace moka::cli {

namespace fs = std::filesystem;

namespace {

constexpr size_t kTarBlock = 512;
constexpr uint64_t kLargestTarred = 0777'7777'7777;  // eleven octal digits

uint64_t tar_padding(uint64_t bytes) { return (kTarBlock - bytes % kTarBlock) % kTarBlock; }

/// The header of a plain file.
std::string ustar_header(const std::string& name, uint64_t bytes, bool is_program) {
  std::string prefix, rest = name;
  if (name.size() > 100) {
    const size_t slash = name.find('/', name.size() - 101);
    if (slash == std::string::npos || slash > 155) throw io::IoError(name + ": the name is too long to be copied");
    prefix = name.substr(0, slash);
    rest = name.substr(slash + 1);
  }
  std::string header(kTarBlock, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    std::copy(text.begin(), text.end(), header.begin() + at);
  };
  put(0, rest);
  put(100, is_program ? "0000700" : "0000600");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", bytes));
  put(136, "00000000000");
  put(148, "        ");  // as what the sum of the bytes counts for itself
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  put(345, prefix);
  const unsigned sum = std::accumulate(header.begin(), header.end(), 0U,
                                       [](unsigned s, char c) { return s + static_cast<unsigned char>(c); });
  put(148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  return header;
}

}  // namespace

void TarStream::add(const std::string& name, Entry entry, bool is_program) {
  if (entry.bytes > kLargestTarred) throw io::IoError(name + ": a file of more than 8 GB cannot be copied");
  entry.header = ustar_header(name, entry.bytes, is_program);
  entries_.push_back(std::move(entry));
}

void TarStream::add_file(const std::string& name, const fs::path& from, bool is_program) {
  std::error_code failure;
  const uint64_t bytes = fs::file_size(from, failure);
  if (failure) throw io::IoError(from.string() + ": " + failure.message());
  add(name, {{}, from, {}, bytes}, is_program);
}

void TarStream::add_text(const std::string& name, std::string text) {
  const uint64_t bytes = text.size();
  add(name, {{}, {}, std::move(text), bytes}, false);
}

void TarStream::add_tree(const std::string& name, const fs::path& from) {
  if (!fs::is_directory(from)) return add_file(name, from);
  std::error_code failure;
  fs::recursive_directory_iterator at(from, failure), end;
  for (; !failure && at != end; at.increment(failure))
    if (!at->is_directory()) add_file(name + "/" + at->path().lexically_relative(from).string(), at->path());
  if (failure) throw io::IoError(from.string() + ": " + failure.message());
}

uint64_t TarStream::bytes() const {
  uint64_t sum = 2 * kTarBlock;
  for (const Entry& e : entries_) sum += kTarBlock + e.bytes + tar_padding(e.bytes);
  return sum;
}

void TarStream::write(const std::function<bool(std::string_view)>& put) const {
  std::string block(size_t{1} << 16, '\0');
  const std::string zeros(2 * kTarBlock, '\0');
  for (const Entry& e : entries_) {
    if (!put(e.header)) return;
    if (e.from.empty() && !put(e.text)) return;
    std::ifstream in;
    if (!e.from.empty()) in.open(e.from, std::ios::binary);
    for (uint64_t left = e.from.empty() ? 0 : e.bytes; left > 0;) {
      const auto part = static_cast<std::streamsize>(std::min<uint64_t>(left, block.size()));
      if (!in.read(block.data(), part)) throw io::IoError(e.from.string() + ": the file cannot be read to its end");
      if (!put(std::string_view(block).substr(0, static_cast<size_t>(part)))) return;
      left -= static_cast<uint64_t>(part);
    }
    if (!put(std::string_view(zeros).substr(0, tar_padding(e.bytes)))) return;
  }
  put(zeros);
}

}  // namespace moka::cli
