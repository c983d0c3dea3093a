// SPDX-License-Identifier: Apache-2.0
#include "hostile/mutate_util.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

namespace moka::test {

namespace {

using Random = std::mt19937_64;

size_t below(Random& r, size_t n) { return n == 0 ? 0 : static_cast<size_t>(r() % n); }

uint64_t extreme(Random& r, uint64_t value) {
  switch (below(r, 14)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return 2;
    case 3: return ~uint64_t{0};
    case 4: return uint64_t{1} << 31;
    case 5: return (uint64_t{1} << 31) - 1;
    case 6: return uint64_t{1} << 63;
    case 7: return value + 1;
    case 8: return value - 1;
    case 9: return value * 2;
    case 10: return uint64_t{1} << below(r, 40);
    case 11: return static_cast<uint64_t>(-static_cast<int64_t>(below(r, 100)));
    case 12: return below(r, 20);
    default: return r();
  }
}

/// A message in protobuf's wire format, cut into fields; bytes that read as a message are cut further.
struct Field {
  uint64_t tag = 0;
  uint64_t number = 0;  ///< of varints
  std::string bytes;    ///< of fixed and length-delimited fields
  std::vector<Field> fields;
  bool message = false;
};

bool read_varint(std::string_view s, size_t& at, uint64_t& out) {
  out = 0;
  for (int shift = 0; at < s.size() && shift < 64; shift += 7) {
    auto b = static_cast<uint8_t>(s[at++]);
    out |= uint64_t{b & 0x7fu} << shift;
    if (b < 128) return true;
  }
  return false;
}

void put_varint(std::string& out, uint64_t v) {
  for (; v >= 128; v >>= 7) out.push_back(static_cast<char>(v | 128));
  out.push_back(static_cast<char>(v));
}

bool parse(std::string_view s, std::vector<Field>& out, int depth) {
  size_t at = 0;
  while (at < s.size()) {
    Field f;
    if (!read_varint(s, at, f.tag) || f.tag >> 3 == 0 || f.tag >> 3 > 4000) return false;
    switch (f.tag & 7) {
      case 0:
        if (!read_varint(s, at, f.number)) return false;
        break;
      case 1:
      case 5: {
        size_t n = (f.tag & 7) == 1 ? 8 : 4;
        if (s.size() - at < n) return false;
        f.bytes = s.substr(at, n);
        at += n;
        break;
      }
      case 2: {
        uint64_t n;
        if (!read_varint(s, at, n) || n > s.size() - at) return false;
        std::string_view body = s.substr(at, n);
        at += n;
        // Large weights rarely read as a message; trying would only cost time.
        f.message = n > 1 && depth < 30 && parse(body, f.fields, depth + 1);
        if (!f.message) {
          f.fields.clear();
          f.bytes = body;
        }
        break;
      }
      default: return false;
    }
    out.push_back(std::move(f));
  }
  return true;
}

void write(const std::vector<Field>& fields, std::string& out) {
  for (const Field& f : fields) {
    put_varint(out, f.tag);
    if ((f.tag & 7) == 0) {
      put_varint(out, f.number);
    } else if ((f.tag & 7) == 2) {
      std::string body = f.bytes;
      if (f.message) {
        body.clear();
        write(f.fields, body);
      }
      put_varint(out, body.size());
      out += body;
    } else {
      out += f.bytes;
    }
  }
}

void collect(std::vector<Field>& fields, std::vector<std::vector<Field>*>& messages, std::vector<Field*>& leaves) {
  if (!fields.empty()) messages.push_back(&fields);
  for (Field& f : fields) {
    if (f.message)
      collect(f.fields, messages, leaves);
    else
      leaves.push_back(&f);
  }
}

std::string flip(std::string s, Random& r, size_t range) {
  range = std::min(range, s.size());
  if (range == 0) return s;
  for (size_t n = 1 + below(r, 6); n-- > 0;) {
    size_t at = below(r, range);
    if (r() & 1)
      s[at] = static_cast<char>(s[at] ^ (1 << below(r, 8)));
    else
      s[at] = static_cast<char>(r());
  }
  return s;
}

std::string splice(const std::string& s, Random& r) {
  if (s.empty()) return s;
  size_t from = below(r, s.size()), n = below(r, std::min<size_t>(s.size() - from, 4096) + 1), to = below(r, s.size());
  std::string piece = s.substr(from, n), out = s;
  switch (below(r, 3)) {
    case 0: return out.insert(to, piece);
    case 1: return out.erase(from, n);
    default: return out.replace(to, std::min(n, s.size() - to), piece);
  }
}

void change_leaf(Field& f, Random& r) {
  if ((f.tag & 7) == 0) {
    f.number = extreme(r, f.number);
  } else if ((f.tag & 7) == 2 && below(r, 3) == 0) {
    switch (below(r, 4)) {
      case 0: f.bytes.clear(); break;
      case 1: f.bytes += f.bytes.substr(0, 64); break;
      case 2: f.bytes.resize(below(r, f.bytes.size() + 1)); break;
      default: f.bytes = splice(f.bytes, r);
    }
  } else if ((f.tag & 7) == 5 && below(r, 2) == 0) {
    constexpr uint32_t kSpecial[] = {0x7f800000, 0xff800000, 0x7fc00000, 0, 0x80000000, 0x7f7fffff, 0xbf800000, 1};
    f.bytes.assign(reinterpret_cast<const char*>(&kSpecial[below(r, 8)]), 4);
  } else {
    f.bytes = flip(f.bytes, r, f.bytes.size());
  }
}

std::string mutate_protobuf(const std::string& s, Random& r) {
  std::vector<Field> fields;
  if (!parse(s, fields, 0)) return flip(s, r, 2000);
  for (size_t n = 1 + below(r, 3); n-- > 0;) {
    std::vector<std::vector<Field>*> messages;
    std::vector<Field*> leaves;
    collect(fields, messages, leaves);
    if (leaves.empty() || messages.empty()) break;
    std::vector<Field>& m = *messages[below(r, messages.size())];
    size_t k = below(r, m.size());
    switch (below(r, 10)) {
      case 0: m.erase(m.begin() + static_cast<std::ptrdiff_t>(k)); break;
      case 1: {
        Field copy = m[k];
        m.insert(m.begin() + static_cast<std::ptrdiff_t>(below(r, m.size())), std::move(copy));
        break;
      }
      case 2: {
        Field copy = (*messages[below(r, messages.size())])[0];
        m[k] = std::move(copy);
        break;
      }
      case 3: m[k].tag = ((m[k].tag >> 3) + 1) << 3 | (m[k].tag & 7); break;
      case 4: std::swap(m[k], m[below(r, m.size())]); break;
      case 5: {
        Field* a = leaves[below(r, leaves.size())];
        const Field* b = leaves[below(r, leaves.size())];
        if ((a->tag & 7) == (b->tag & 7)) a->number = b->number, a->bytes = std::string(b->bytes);
        break;
      }
      default: change_leaf(*leaves[below(r, leaves.size())], r);
    }
  }
  std::string out;
  write(fields, out);
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string mutate_text(std::string s, Random& r) {
  if (s.empty()) return s;
  for (size_t n = 1 + below(r, 3); n-- > 0 && !s.empty();) {
    size_t at = below(r, s.size());
    switch (below(r, 7)) {
      case 0:
      case 1:
      case 2: {  // a number
        while (at < s.size() && !is_digit(s[at])) at++;
        size_t end = at;
        while (end < s.size() && is_digit(s[end])) end++;
        if (at == end) break;
        uint64_t v = std::strtoull(s.substr(at, std::min<size_t>(end - at, 19)).c_str(), nullptr, 10);
        s.replace(at, end - at, std::to_string(static_cast<int64_t>(extreme(r, v))));
        break;
      }
      case 3: {  // a line
        size_t begin = s.rfind('\n', at), end = s.find('\n', at);
        begin = begin == std::string::npos ? 0 : begin;
        end = end == std::string::npos ? s.size() : end;
        std::string line = s.substr(begin, end - begin);
        if (r() & 1)
          s.erase(begin, end - begin);
        else
          s.insert(below(r, 2) ? end : begin, line);
        break;
      }
      case 4: {  // a word put in place of another
        auto word = [&](size_t p) {
          auto inside = [&](size_t i) {
            return i < s.size() && (std::isalnum(static_cast<unsigned char>(s[i])) || s[i] == '_');
          };
          while (p < s.size() && !inside(p)) p++;
          size_t e = p;
          while (inside(e)) e++;
          return std::pair(p, e - p);
        };
        auto [from, n1] = word(below(r, s.size()));
        std::string text = s.substr(from, n1);
        auto [to, n2] = word(at);
        s.replace(to, n2, text);
        break;
      }
      case 5: s = splice(s, r); break;
      default: s = flip(s, r, s.size());
    }
  }
  return s;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string mutate_program(std::string s, Random& r) {
  size_t body = std::min(s.find("func "), s.size());
  if (below(r, 6) == 0) {
    constexpr const char* kTypes[] = {"fp16", "fp32", "int32", "bool", "int8", "uint8", "int16", "string"};
    std::string from = kTypes[below(r, 4)], to = kTypes[below(r, 8)];
    for (size_t at = body; (at = s.find(from, at)) != std::string::npos; at += to.size())
      s.replace(at, from.size(), to);
  }
  for (size_t n = 1 + below(r, 3); n-- > 0;) {
    std::vector<std::pair<size_t, size_t>> numbers;
    for (size_t i = body; i < s.size(); i++) {
      if (!is_digit(s[i]) || is_word(s[i - 1]) || s[i - 1] == '.') continue;
      size_t end = i;
      while (end < s.size() && is_word(s[end])) end++;
      bool whole = std::all_of(s.begin() + static_cast<std::ptrdiff_t>(i), s.begin() + static_cast<std::ptrdiff_t>(end),
                               is_digit);
      if (whole && s[end] != '.') numbers.emplace_back(s[i - 1] == '-' ? i - 1 : i, end);
      i = end;
    }
    if (numbers.empty()) break;
    auto [from, end] = numbers[below(r, numbers.size())];
    int64_t v = std::strtoll(s.c_str() + from, nullptr, 10);
    std::string text = s.substr(from, end - from);
    switch (below(r, 6)) {
      case 0: text = std::to_string(static_cast<int32_t>(extreme(r, static_cast<uint64_t>(v)))); break;
      case 1: text = std::to_string(static_cast<int64_t>(extreme(r, static_cast<uint64_t>(v)))); break;
      case 2: text = std::to_string(static_cast<int64_t>(static_cast<uint64_t>(v) + below(r, 5) - 2)); break;
      case 3: text = std::to_string(below(r, 12)); break;
      case 4: text = std::to_string(-1 - static_cast<int64_t>(below(r, 3))); break;
      default: text += ", " + text;
    }
    s.replace(from, end - from, text);
  }
  return s;
}

std::string mutate_records(std::string s, Random& r) {
  if (s.size() < 8 || below(r, 3) == 0) return flip(s, r, below(r, 2) ? 256 : s.size());
  for (size_t n = 1 + below(r, 3); n-- > 0;) {
    // Headers sit at multiples of 64 in weight files.
    size_t width = r() & 1 ? 8 : 4;
    size_t at = below(r, 2) ? below(r, s.size() / 64 + 1) * 64 + below(r, 8) * 4 : below(r, s.size());
    if (at + width > s.size()) continue;
    uint64_t v = 0;
    std::memcpy(&v, s.data() + at, width);
    v = extreme(r, v);
    std::memcpy(s.data() + at, &v, width);
  }
  return s;
}

}  // namespace

Layout layout_of(const std::string& name) {
  if (name.ends_with(".mlmodel")) return Layout::protobuf;
  if (name.ends_with(".bin") || name.ends_with(".weights")) return Layout::records;
  return Layout::text;
}

std::string mutate(const std::string& bytes, Layout layout, uint64_t seed) {
  Random r(seed * 0x9e3779b97f4a7c15u + 1);
  switch (layout == Layout::program ? 9 : below(r, 10)) {
    case 0: return bytes.substr(0, below(r, bytes.size() + 1));
    case 1: return flip(bytes, r, below(r, 2) ? bytes.size() : 1000);
    case 2: return splice(bytes, r);
    default: break;
  }
  switch (layout) {
    case Layout::protobuf: return mutate_protobuf(bytes, r);
    case Layout::text: return mutate_text(bytes, r);
    case Layout::program: return mutate_program(bytes, r);
    case Layout::records: return mutate_records(bytes, r);
  }
  return bytes;
}

}  // namespace moka::test
