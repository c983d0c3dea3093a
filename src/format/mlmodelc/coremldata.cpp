#include "format/mlmodelc/coremldata.h"

#include <cstring>
#include <string_view>

namespace moka::format {
namespace {

constexpr uint64_t string_labels_tag = 100, int64_labels_tag = 101;  // oneof numbers of ClassLabels

/// Reads a flat little-endian stream; every count is checked against the bytes that are left.
class Stream {
 public:
  explicit Stream(const Bytes& bytes) : bytes_(bytes) {}

  size_t left() const { return bytes_.size() - at_; }

  template <class T>
  Result<T> number(std::string_view what) {
    if (left() < sizeof(T)) return ends(what, sizeof(T));
    T v;
    std::memcpy(&v, bytes_.data() + at_, sizeof v);
    at_ += sizeof v;
    return v;
  }

  Result<Bytes> bytes(std::string_view what, uint64_t size) {
    if (size > left()) return ends(what, size);
    Bytes out = bytes_.slice(at_, size);
    at_ += size;
    return out;
  }

  Result<Bytes> sized_bytes(std::string_view what) {
    auto size = MOKA_TRY(number<uint64_t>(what));
    return bytes(what, size);
  }

  Result<std::string> string(std::string_view what) {
    Bytes b = MOKA_TRY(sized_bytes(what));
    return std::string(b.text());
  }

  /// A count of elements of at least `element` bytes each.
  Result<uint64_t> count(std::string_view what, size_t element) {
    auto n = MOKA_TRY(number<uint64_t>(what));
    if (n > left() / element)
      return fail(ErrorCode::malformed, "coremldata.bin: ", what, " counts ", n, " elements at byte ", at_, " with ",
                  left(), " bytes left");
    return n;
  }

  Result<std::vector<std::string>> strings(std::string_view what) {
    auto n = MOKA_TRY(count(what, sizeof(uint64_t)));
    std::vector<std::string> out;
    out.reserve(n);
    for (uint64_t i = 0; i < n; ++i) out.push_back(MOKA_TRY(string(what)));
    return out;
  }

  Status expect(std::string_view what, uint64_t value) {
    auto got = MOKA_TRY(number<uint64_t>(what));
    if (got != value)
      return fail(ErrorCode::malformed, "coremldata.bin: ", what, " before byte ", at_, " is ", got, ", expected ",
                  value);
    return {};
  }

 private:
  Error ends(std::string_view what, uint64_t size) const {
    return fail(ErrorCode::malformed, "coremldata.bin: ", what, " at byte ", at_, " takes ", size, " bytes; ", left(),
                " are left");
  }

  const Bytes& bytes_;
  size_t at_ = 0;
};

Status read_class_labels(Stream& in, CoreMLData& out) {
  auto kind = MOKA_TRY(in.number<uint64_t>("kind of class labels"));
  if (kind == string_labels_tag) {
    out.string_labels = MOKA_TRY(in.strings("class labels"));
  } else if (kind == int64_labels_tag) {
    auto n = MOKA_TRY(in.count("class labels", sizeof(int64_t)));
    for (uint64_t i = 0; i < n; ++i) out.int64_labels.push_back(MOKA_TRY(in.number<int64_t>("class label")));
  } else {
    return fail(ErrorCode::malformed, "coremldata.bin: kind of class labels is ", kind, ", expected 100 or 101");
  }
  out.probability_layer = MOKA_TRY(in.string("name of the probability layer"));
  return {};
}

Status read_tail(Stream& in, CoreMLData& out) {
  if (out.is_neural_network()) {
    MOKA_TRY(in.expect("model type of the tail", out.type));
    if (out.type == 403) MOKA_TRY(read_class_labels(in, out));
    out.outputs = MOKA_TRY(in.strings("network outputs"));
  } else if (out.is_program()) {
    do {
      MOKA_TRY(in.expect("model type of the tail", out.type));
      MOKA_TRY(in.expect("end of a function's tail", 0));
      ++out.functions;
    } while (in.left() > 0);
  } else if (out.is_pipeline()) {
    out.stages = MOKA_TRY(in.number<uint64_t>("number of models"));
    MOKA_TRY(in.expect("model type of the tail", out.type));
  } else {
    return fail(ErrorCode::unsupported, "a compiled model of type ", out.type, " with the target '", out.target,
                "' has no known layout");
  }
  if (in.left() > 0)
    return fail(ErrorCode::malformed, "coremldata.bin: ", in.left(), " bytes follow the tail of model type ", out.type);
  return {};
}

/// Appends little-endian numbers and counted strings.
class Writer {
 public:
  template <class T>
  void number(T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view text) {
    number<uint64_t>(text.size());
    out += text;
  }
  void strings(const std::vector<std::string>& list) {
    number<uint64_t>(list.size());
    for (const auto& s : list) string(s);
  }
  std::string out;
};

void write_tail(Writer& w, const CoreMLData& data) {
  if (data.is_neural_network()) {
    w.number<uint64_t>(data.type);
    if (data.type == 403) {
      w.number(data.int64_labels.empty() ? string_labels_tag : int64_labels_tag);
      if (data.int64_labels.empty()) {
        w.strings(data.string_labels);
      } else {
        w.number<uint64_t>(data.int64_labels.size());
        for (int64_t label : data.int64_labels) w.number(label);
      }
      w.string(data.probability_layer);
    }
    w.strings(data.outputs);
  } else if (data.is_program()) {
    for (uint64_t i = 0; i < data.functions; ++i) {
      w.number<uint64_t>(data.type);
      w.number<uint64_t>(0);
    }
  } else if (data.is_pipeline()) {
    w.number(data.stages);
    w.number<uint64_t>(data.type);
  }
}

}  // namespace

std::string write_coremldata(const CoreMLData& data) {
  Writer w;
  w.number(data.type);
  for (uint64_t v : data.version) w.number(v);
  w.string(data.target);
  w.number(data.spec_version);
  w.out.append(28, '\0');
  if (data.target == "spec") {
    w.out += data.spec.text();
    return std::move(w.out);
  }
  w.string(data.description.text());
  write_tail(w, data);
  return std::move(w.out);
}

Result<CoreMLData> parse_coremldata(const Bytes& file) {
  Stream in(file);
  CoreMLData out;
  out.type = MOKA_TRY(in.number<uint32_t>("model type"));
  for (uint64_t& v : out.version) v = MOKA_TRY(in.number<uint64_t>("compiler version"));
  out.target = MOKA_TRY(in.string("target"));
  out.spec_version = MOKA_TRY(in.number<uint32_t>("specification version"));
  MOKA_TRY(in.bytes("header", 28));
  if (out.target == "spec") {
    out.spec = MOKA_TRY(in.bytes("specification", in.left()));
    return out;
  }
  out.description = MOKA_TRY(in.sized_bytes("model description"));
  MOKA_TRY(read_tail(in, out));
  return out;
}

}  // namespace moka::format
