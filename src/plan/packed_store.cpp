#include "plan/packed_store.h"

#include <cstdint>
#include <functional>

#include "base/bytes.h"
#include "base/checksum.h"
#include "plan/packed_cache.h"

namespace moka::plan {

namespace {

constexpr size_t kSpelledOut = 4 << 10;  // size up to which a tensor is identified by its content
constexpr size_t kDigested = 64 << 10;   // size up to which a tensor of no file is identified by a digest
constexpr int kMaxKeyDepth = 64;

/// A name for a large tensor; empty: it has none.
using NameOf = std::function<std::string(const ir::Tensor&)>;

bool describe(const ir::Value& value, int depth, std::string& text, const NameOf& name_of) {
  if (value.constant() != nullptr) {
    const ir::Tensor& t = value.constant()->tensor;
    if (t.empty_handle()) return false;
    text += cat(t.dtype(), " ", t.shape());
    if (t.dtype() == ir::DType::string) {
      for (int64_t i = 0; i < t.count(); i++) {
        const auto& s = t.view().as<std::string>()[i];
        text += cat(" ", s.size(), ":", s);
      }
    } else if (t.bytes() <= kSpelledOut) {
      text += ':';
      text.append(static_cast<const char*>(t.data()), t.bytes());
    } else {
      const std::string name = name_of(t);
      if (name.empty()) return false;
      text += cat("@", name);
    }
    return true;
  }
  const ir::Op* op = value.producer();
  if (op == nullptr || depth == 0 || !op->epilogue.empty() || op->block_count() > 0) return false;
  text += cat(op->type_name(), " ", static_cast<int>(op->version().since), " ", value.index(), "(");
  for (const ir::Operand& o : op->operands()) {
    text += cat(o.param, "=");
    for (const ir::Value* in : o.values) {
      if (!describe(*in, depth - 1, text, name_of)) return false;
      text += ',';
    }
  }
  text += ')';
  return true;
}

}  // namespace

std::shared_ptr<Packed> PackedStore::entry(const std::string& key, std::vector<ir::Tensor> sources) {
  std::lock_guard lock(mutex_);
  std::weak_ptr<Packed>& there = packed_[key];
  if (auto p = there.lock()) return p;
  auto p = std::make_shared<Packed>();
  p->sources = std::move(sources);
  there = p;
  return p;
}

std::string identity_of(const ir::Value& value, std::vector<ir::Tensor>& sources) {
  std::string text;
  const auto name_of = [&](const ir::Tensor& t) {
    sources.push_back(t);
    return cat(reinterpret_cast<uintptr_t>(t.data()));
  };
  return describe(value, kMaxKeyDepth, text, name_of) ? text : std::string();
}

std::string lasting_identity_of(const ir::Value& value, const PackedCache& cache) {
  std::string text;
  const auto name_of = [&](const ir::Tensor& t) {
    const auto place = place_in_file(t.data(), t.bytes());
    const std::string* name = place ? cache.name_of(place->content) : nullptr;
    if (name != nullptr) return cat("'", *name, "' at ", place->offset);
    if (t.bytes() > kDigested) return std::string();
    Digest digest;
    digest.add({static_cast<const std::byte*>(t.data()), t.bytes()});
    return digest.text();
  };
  return describe(value, kMaxKeyDepth, text, name_of) ? text : std::string();
}

}  // namespace moka::plan
