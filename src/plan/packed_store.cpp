// SPDX-License-Identifier: Apache-2.0
#include "plan/packed_store.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

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

/// Describes how a value is made, each operation once. Later it has a number.
class Describer {
 public:
  Describer(const ParameterValues& parameters, NameOf name_of)
      : parameters_(parameters), name_of_(std::move(name_of)) {}

  /// Empty: a tensor has no name, or an operation no description.
  std::string text_of(const ir::Value& value) { return add(value, kMaxKeyDepth) ? std::move(text_) : std::string(); }

 private:
  bool add(const ir::Value& value, int depth) {
    if (const ir::Tensor* held = held_tensor(value, parameters_)) return add(*held);
    const ir::Op* op = value.producer();
    if (value.constant() != nullptr) return false;
    if (op != nullptr && op->has_trait(ir::Trait::parameter) && op->input("initial") != nullptr)
      return add(*op->input("initial"), depth - 1);
    if (op == nullptr || depth == 0 || !op->epilogue.empty() || op->block_count() > 0) return false;
    if (const auto it = numbers_.find(op); it != numbers_.end()) {
      text_ += cat("#", it->second, " ", value.index());
      return true;
    }
    text_ += cat(op->type_name(), " ", static_cast<int>(op->version().since), " ", value.index(), "(");
    for (const ir::Operand& o : op->operands()) {
      text_ += cat(o.param, "=");
      for (const ir::Value* in : o.values) {
        if (!add(*in, depth - 1)) return false;
        text_ += ',';
      }
    }
    text_ += ')';
    numbers_.emplace(op, numbers_.size());
    return true;
  }

  bool add(const ir::Tensor& t) {
    text_ += cat(t.dtype(), " ", t.shape());
    if (t.dtype() == ir::DType::string) {
      for (int64_t i = 0; i < t.count(); i++) {
        const auto& s = t.view().as<std::string>()[i];
        text_ += cat(" ", s.size(), ":", s);
      }
    } else if (t.bytes() <= kSpelledOut) {
      text_ += ':';
      text_.append(static_cast<const char*>(t.data()), t.bytes());
    } else {
      const std::string name = name_of_(t);
      if (name.empty()) return false;
      text_ += cat("@", name);
    }
    return true;
  }

  const ParameterValues& parameters_;
  const NameOf name_of_;
  std::string text_;
  std::unordered_map<const ir::Op*, size_t> numbers_;
};

std::string digest_of(const ir::Tensor& t) {
  Digest digest;
  digest.add({static_cast<const std::byte*>(t.data()), t.bytes()});
  return digest.text();
}

}  // namespace

struct PackedStore::Entries {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Packed>> all;

  static std::shared_ptr<Packed> take(const std::shared_ptr<Entries>& from, const std::string& key,
                                      std::vector<ir::Tensor> sources) {
    // Both outlive the lock, which the destructor of an entry takes.
    std::shared_ptr<Packed> there;
    const std::shared_ptr<Packed> made(new Packed, [from, key](const Packed* p) {
      delete p;
      std::lock_guard lock(from->mutex);
      // A later entry may have taken the place.
      if (const auto it = from->all.find(key); it != from->all.end() && it->second.expired()) from->all.erase(it);
    });
    std::lock_guard lock(from->mutex);
    std::weak_ptr<Packed>& at = from->all[key];
    if ((there = at.lock()) != nullptr) return there;
    made->sources = std::move(sources);
    at = made;
    return made;
  }

  /// A forked child makes its own: a thread that was packing in the parent is not there to finish.
  static const std::shared_ptr<Entries>& of_process() {
    static const std::shared_ptr<Entries>& entries = *[] {
      static auto* made = new std::shared_ptr<Entries>(std::make_shared<Entries>());
      pthread_atfork([] { (*made)->mutex.lock(); }, [] { (*made)->mutex.unlock(); },
                     [] {
                       (*made)->all.clear();
                       (*made)->mutex.unlock();
                     });
      return made;
    }();
    return entries;
  }
};

PackedStore::PackedStore() : own_(std::make_shared<Entries>()) {}

std::shared_ptr<Packed> PackedStore::entry(const std::string& key, Identity identity, Sharing sharing) {
  const auto is_in_file = [](const ir::Tensor& t) { return place_in_file(t.data(), t.bytes()).has_value(); };
  const bool by_all = sharing == Sharing::process && !identity.sources.empty() &&
                      std::all_of(identity.sources.begin(), identity.sources.end(), is_in_file);
  return Entries::take(by_all ? Entries::of_process() : own_, cat(key, " from ", identity.text),
                       std::move(identity.sources));
}

Identity identity_of(const ir::Value& value, const ParameterValues& parameters) {
  Identity out;
  const auto name_of = [&](const ir::Tensor& t) {
    if (t.bytes() <= kDigested && !place_in_file(t.data(), t.bytes())) return digest_of(t);
    out.sources.push_back(t);
    return cat(reinterpret_cast<uintptr_t>(t.data()));
  };
  out.text = Describer(parameters, name_of).text_of(value);
  return out;
}

std::string lasting_identity_of(const ir::Value& value, const PackedCache& cache, const ParameterValues& parameters) {
  const auto name_of = [&](const ir::Tensor& t) {
    const auto place = place_in_file(t.data(), t.bytes());
    const std::string* name = place ? cache.name_of(place->content) : nullptr;
    if (name != nullptr) return cat("'", *name, "' at ", place->offset);
    return t.bytes() > kDigested ? std::string() : digest_of(t);
  };
  return Describer(parameters, name_of).text_of(value);
}

}  // namespace moka::plan
