// SPDX-License-Identifier: Apache-2.0
#include "trace/read.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <protozero/pbf_reader.hpp>

#include "trace/perfetto.h"

namespace moka::trace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

namespace {

using Texts = std::map<uint64_t, std::string>;

/// The field's value, which a damaged file may hold as another wire type: 0 or nothing then.
uint64_t number_of(pbf_reader& field) {
  if (field.has_wire_type(pbf_wire_type::varint)) return field.get_uint64();
  field.skip();
  return 0;
}
data_view view_of(pbf_reader& field) {
  if (field.has_wire_type(pbf_wire_type::length_delimited)) return field.get_view();
  field.skip();
  return {};
}
std::string text_of(pbf_reader& field) {
  const data_view v = view_of(field);
  return {v.data(), v.size()};
}

/// The texts and open slices that the packets of one sequence refer to.
struct Sequence {
  Texts names, kinds, argument_names, argument_texts;
  std::map<uint64_t, std::vector<size_t>> open;  ///< by track: indices of Contents::slices
};

class Reader {
 public:
  explicit Reader(Contents& out) : out_(out) {}

  void packet(pbf_reader packet) {
    uint64_t sequence = 0;
    uint32_t flags = 0;
    int64_t at = 0;
    data_view event{}, data{}, track{};
    while (packet.next()) {
      switch (packet.tag()) {
        case perfetto::kTimestamp: at = static_cast<int64_t>(number_of(packet)); break;
        case perfetto::kSequenceId: sequence = static_cast<uint32_t>(number_of(packet)); break;
        case perfetto::kSequenceFlags: flags = static_cast<uint32_t>(number_of(packet)); break;
        case perfetto::kTrackEvent: event = view_of(packet); break;
        case perfetto::kInternedData: data = view_of(packet); break;
        case perfetto::kTrackDescriptor: track = view_of(packet); break;
        default: packet.skip();
      }
    }
    Sequence& own = sequences_[sequence];
    if ((flags & perfetto::kStateCleared) != 0) own = {};
    if (data.size() > 0) interned(pbf_reader(data), own);
    if (track.size() > 0) descriptor(pbf_reader(track));
    if (event.size() > 0) track_event(pbf_reader(event), at, own);
  }

 private:
  static void interned(pbf_reader data, Sequence& own) {
    while (data.next()) {
      Texts* to = nullptr;
      switch (data.tag()) {
        case perfetto::kNames: to = &own.names; break;
        case perfetto::kCategories: to = &own.kinds; break;
        case perfetto::kAnnotationNames: to = &own.argument_names; break;
        case perfetto::kAnnotationTexts: to = &own.argument_texts; break;
        default: break;
      }
      if (to == nullptr) {
        data.skip();
        continue;
      }
      pbf_reader entry = pbf_reader(view_of(data));
      uint64_t id = 0;
      std::string text;
      while (entry.next()) {
        if (entry.tag() == perfetto::kId)
          id = number_of(entry);
        else if (entry.tag() == perfetto::kText)
          text = text_of(entry);
        else
          entry.skip();
      }
      (*to)[id] = std::move(text);
    }
  }

  void descriptor(pbf_reader d) {
    uint64_t uuid = 0;
    Track t;
    while (d.next()) {
      switch (d.tag()) {
        case perfetto::kUuid: uuid = number_of(d); break;
        case perfetto::kParent: t.parent = number_of(d); break;
        case perfetto::kTrackName: t.name = text_of(d); break;
        case perfetto::kDescription: t.thread = text_of(d); break;
        case perfetto::kProcess: {
          t.is_process = true;
          int32_t pid = 0;
          pbf_reader p = pbf_reader(view_of(d));
          while (p.next()) {
            if (p.tag() == perfetto::kPid)
              pid = static_cast<int32_t>(number_of(p));
            else if (p.tag() == perfetto::kProcessName)
              t.process = text_of(p);
            else
              p.skip();
          }
          t.process += cat(t.process.empty() ? "" : " ", pid);
          break;
        }
        case perfetto::kTrackCounter: {
          t.is_counter = true;
          pbf_reader c = pbf_reader(view_of(d));
          while (c.next()) {
            if (c.tag() == perfetto::kUnit)
              t.is_bytes = number_of(c) == perfetto::kUnitBytes;
            else
              c.skip();
          }
          break;
        }
        default: d.skip();
      }
    }
    out_.tracks[uuid] = std::move(t);
  }

  static const std::string& text(const Texts& texts, uint64_t id) {
    static const std::string none;
    const auto it = texts.find(id);
    return it != texts.end() ? it->second : none;
  }

  void track_event(pbf_reader e, int64_t at, Sequence& own) {
    uint32_t type = 0;
    int64_t value = 0;
    Slice s;
    s.from = at;
    while (e.next()) {
      switch (e.tag()) {
        case perfetto::kType: type = static_cast<uint32_t>(number_of(e)); break;
        case perfetto::kTrack: s.track = number_of(e); break;
        case perfetto::kEventName: s.name = text(own.names, number_of(e)); break;
        case perfetto::kCategory: s.kind = text(own.kinds, number_of(e)); break;
        case perfetto::kCounterValue: value = static_cast<int64_t>(number_of(e)); break;
        case perfetto::kAnnotation: annotation(pbf_reader(view_of(e)), own, s); break;
        default: e.skip();
      }
    }
    if (type == perfetto::kCounter) {
      out_.samples.push_back({s.track, at, value});
      return;
    }
    auto& open = own.open[s.track];
    if (type == perfetto::kEnd) {
      if (open.empty()) return;
      out_.slices[open.back()].to = at;
      open.pop_back();
    } else if (type == perfetto::kBegin) {
      s.depth = static_cast<int>(open.size());
      open.push_back(out_.slices.size());
      out_.slices.push_back(std::move(s));
    }
  }

  static void annotation(pbf_reader a, const Sequence& own, Slice& to) {
    std::string name, value;
    int64_t number = 0;
    bool is_number = false;
    while (a.next()) {
      switch (a.tag()) {
        case perfetto::kAnnotationName: name = text(own.argument_names, number_of(a)); break;
        case perfetto::kPlainName: name = text_of(a); break;
        case perfetto::kInteger:
          number = static_cast<int64_t>(number_of(a));
          is_number = true;
          break;
        case perfetto::kString: value = text_of(a); break;
        case perfetto::kTextId: value = text(own.argument_texts, number_of(a)); break;
        default: a.skip();
      }
    }
    if (is_number)
      to.numbers[name] = number;
    else
      to.texts[name] = std::move(value);
  }

  Contents& out_;
  std::map<uint64_t, Sequence> sequences_;
};

/// The offset at which the last complete packet ends.
size_t whole_packets(std::span<const std::byte> bytes) {
  const char* const begin = reinterpret_cast<const char*>(bytes.data());
  const char* const end = begin + bytes.size();
  const char* at = begin;
  try {
    for (const char* next = at; next != end;) {
      if (*next++ != (perfetto::kPacket << 3 | 2)) break;
      const uint64_t size = protozero::decode_varint(&next, end);
      if (size > static_cast<uint64_t>(end - next)) break;
      next += size;
      at = next;
    }
  } catch (const protozero::exception&) {
  }
  return static_cast<size_t>(at - begin);
}

}  // namespace

Result<Contents> read(std::span<const std::byte> bytes) {
  const size_t size = whole_packets(bytes);
  if (size == 0)
    return fail(ErrorCode::malformed, "trace: expected packets of Perfetto's format, got ", bytes.size(),
                " bytes of something else");
  Contents out;
  Reader reader(out);
  pbf_reader trace(reinterpret_cast<const char*>(bytes.data()), size);
  try {
    while (trace.next(perfetto::kPacket)) reader.packet(pbf_reader(view_of(trace)));
  } catch (const protozero::exception& e) {
    return fail(ErrorCode::malformed, "trace: a packet contradicts itself: ", e.what());
  }
  return out;
}

Result<Contents> read_file(const std::string& path) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    return fail(ErrorCode::io, "trace '", path, "': expected a file, got a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::not_found, "trace '", path, "': no such file");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return fail(ErrorCode::io, "trace '", path, "': cannot be read");
  return MOKA_TRY_IN(read(std::as_bytes(std::span(bytes))), cat("'", path, "'"));
}

}  // namespace moka::trace
