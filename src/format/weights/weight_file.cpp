// SPDX-License-Identifier: Apache-2.0
#include "format/weights/weight_file.h"

#include <cstring>

namespace moka::format {
namespace {

uint64_t rounded_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

void put(std::string& out, uint64_t value, size_t bytes) { out.append(reinterpret_cast<const char*>(&value), bytes); }

}  // namespace

uint64_t WeightFile::add(BlobType type, Bytes data, uint64_t count) {
  for (const Entry& e : entries_)
    if (e.type == type && e.count == count && e.data.data() == data.data() && e.data.size() == data.size())
      return e.offset;
  const uint64_t offset = end_;
  end_ = rounded_up(offset + record_size + data.size(), record_size);
  entries_.push_back({type, std::move(data), count, offset});
  return offset;
}

Rope WeightFile::content() const {
  constexpr uint64_t version = 2, sentinel = 0xDEADBEEF;
  Rope out;
  std::string head;
  put(head, entries_.size(), sizeof(uint32_t));
  put(head, version, sizeof(uint32_t));
  head.resize(record_size);
  out.append(std::string_view(head));
  for (const Entry& e : entries_) {
    std::string record;
    put(record, sentinel, sizeof(uint32_t));
    put(record, static_cast<uint64_t>(e.type), sizeof(uint32_t));
    put(record, e.data.size(), sizeof(uint64_t));
    put(record, e.offset + record_size, sizeof(uint64_t));
    const unsigned bits = bit_width(e.type);
    put(record, bits < 8 ? e.data.size() * 8 - e.count * bits : 0, sizeof(uint64_t));
    record.resize(record_size);
    out.append(std::string_view(record));
    out.append(e.data);
    out.append(std::string_view(std::string(rounded_up(out.size(), record_size) - out.size(), '\0')));
  }
  return out;
}

}  // namespace moka::format
