// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodel/decode.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include <cstdlib>
#include <limits>
#include <new>
#include <optional>

#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

/// The memory that the decoder may still allocate on this thread. Protobuf's allocation hook has no context argument.
struct Meter {
  MemoryBudget* budget;
  size_t charged = 0;
  std::optional<Error> error;
};
thread_local Meter* meter = nullptr;

struct OverBudget : std::bad_alloc {};

void* allocate_block(size_t size) {
  if (meter && meter->budget) {
    Status s = meter->budget->take(size, "decoding the specification");
    if (!s.ok()) {
      meter->error = std::move(s).error();
      throw OverBudget();
    }
    meter->charged += size;
  }
  void* p = std::malloc(size);
  if (!p) throw std::bad_alloc();
  return p;
}

void free_block(void* p, size_t) { std::free(p); }

google::protobuf::ArenaOptions arena_options() {
  google::protobuf::ArenaOptions options;
  options.start_block_size = 4096;
  options.max_block_size = 64 * 1024;
  options.block_alloc = allocate_block;
  options.block_dealloc = free_block;
  return options;
}

class MeterScope {
 public:
  explicit MeterScope(MemoryBudget* budget) : meter_{budget, 0, std::nullopt}, outer_(meter) { meter = &meter_; }
  ~MeterScope() { meter = outer_; }
  Meter& get() { return meter_; }

 private:
  Meter meter_;
  Meter* outer_;
};

}  // namespace

class MessageHolder {
 public:
  explicit MessageHolder(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
  ~MessageHolder() {
    arena_.reset();
    if (budget_) budget_->give_back(charged_);
  }
  MessageHolder(const MessageHolder&) = delete;
  MessageHolder& operator=(const MessageHolder&) = delete;

  proto::Model* create() {
    arena_.emplace(arena_options());
    return google::protobuf::Arena::CreateMessage<proto::Model>(&*arena_);
  }
  MemoryBudget* budget() const { return budget_.get(); }
  void charged(size_t bytes) { charged_ += bytes; }

 private:
  std::shared_ptr<MemoryBudget> budget_;
  std::optional<google::protobuf::Arena> arena_;
  size_t charged_ = 0;
};

namespace {

template <class Target>
Result<DecodedModel> decode(const Bytes& bytes, const std::shared_ptr<MemoryBudget>& budget, const char* what,
                            Target target) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return fail(ErrorCode::unsupported, what, " has ", bytes.size(), " bytes besides its weights; protobuf allows ",
                std::numeric_limits<int>::max());
  DecodedModel out;
  out.holder = std::make_shared<MessageHolder>(budget);
  if (budget) {
    MOKA_TRY(budget->take(bytes.size(), "text and bytes of the specification"));
    out.holder->charged(bytes.size());
  }
  MeterScope scope(budget.get());
  google::protobuf::LogSilencer quiet;
  bool ok = false, memory = true;
  try {
    out.model = out.holder->create();
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                              static_cast<int>(bytes.size()));
    in.SetRecursionLimit(max_message_depth);
    auto& message = target(*out.model);
    ok = message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
  } catch (const std::bad_alloc&) {
    memory = false;
  }
  out.holder->charged(scope.get().charged);
  if (scope.get().error) return std::move(*scope.get().error);
  if (!memory) return fail(ErrorCode::out_of_budget, what, " does not fit into the memory of this machine");
  if (!ok)
    return fail(ErrorCode::malformed, what, " of ", bytes.size(),
                " bytes does not decode: a field is cut short or of the wrong kind, messages nest deeper than ",
                max_message_depth, ", or text is not UTF-8");
  return out;
}

}  // namespace

Result<DecodedModel> decode_model(const Bytes& spec, const std::shared_ptr<MemoryBudget>& budget) {
  CutSpec cut = MOKA_TRY(cut_payloads(spec));
  DecodedModel out = MOKA_TRY(decode(cut.skeleton, budget, "the specification",
                                     [](proto::Model& m) -> google::protobuf::MessageLite& { return m; }));
  out.payloads = std::move(cut.payloads);
  return out;
}

DecodedModel copy_of(const DecodedModel& model) {
  DecodedModel out;
  out.holder = std::make_shared<MessageHolder>(nullptr);
  out.model = out.holder->create();
  out.model->CopyFrom(*model.model);
  out.payloads = model.payloads;
  return out;
}

Result<DecodedModel> decode_description(const Bytes& description, const std::shared_ptr<MemoryBudget>& budget) {
  return decode(description, budget, "the model description",
                [](proto::Model& m) -> google::protobuf::MessageLite& { return *m.mutable_description(); });
}

}  // namespace moka::format
