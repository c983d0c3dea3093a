// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/recorder.h"

#include <algorithm>
#include <map>

namespace moka::devices::gpu {

namespace {

/// The steps of a command that computes what two did.
std::vector<uint32_t> both_steps(std::vector<uint32_t> earlier, const std::vector<uint32_t>& later) {
  for (const uint32_t s : later)
    if (std::find(earlier.begin(), earlier.end(), s) == earlier.end()) earlier.push_back(s);
  return earlier;
}

bool overlap(const Use& a, const Use& b) {
  if (a.parts != 0 && a.parts == b.parts) return false;
  return a.overlaps(b);
}

/// The parts of stretches of a buffer that `taken` does not cover.
std::vector<Use> without(const std::vector<Use>& all, const Use& taken) {
  std::vector<Use> left;
  for (const Use& u : all) {
    if (!u.overlaps(taken)) {
      left.push_back(u);
      continue;
    }
    const size_t end = u.offset + u.bytes, taken_end = taken.offset + taken.bytes;
    for (const auto& [from, to] : {std::pair(u.offset, taken.offset), std::pair(taken_end, end)})
      if (from < to) {
        left.push_back(u);
        left.back().offset = from;
        left.back().bytes = to - from;
      }
  }
  return left;
}

}  // namespace

Use Use::of(const kernel::BufferView& v, bool written) {
  auto bytes = kernel::storage_bytes(v.dtype, v.shape, v.layout);
  const size_t element = v.layout.half ? 2 : static_cast<size_t>(ir::bits(v.dtype)) / 8;
  return {v.buffer, v.offset, bytes.ok() ? *bytes : 0, element, written};
}

Groups CommandRecorder::lines(uint64_t n) {
  constexpr uint64_t kMost = 32768;
  const uint64_t groups = std::max<uint64_t>(1, (n + 255) / 256);
  return {static_cast<uint32_t>(std::min(groups, kMost)), static_cast<uint32_t>((groups + kMost - 1) / kMost), 1};
}

Result<Command> CommandRecorder::command(std::string_view name, std::vector<uint32_t> constants, std::vector<Use> uses,
                                         std::span<const std::byte> params, Groups groups) const {
  const Code* code = device_.find_code(name);
  if (code == nullptr) return fail(ErrorCode::internal, "device '", device_.name(), "' has no code for ", name);
  return command(*code, std::move(constants), std::move(uses), params, groups);
}

Result<Command> CommandRecorder::command(const Code& code, std::vector<uint32_t> constants, std::vector<Use> uses,
                                         std::span<const std::byte> params, Groups groups) const {
  Command c;
  c.run = {&code, std::move(constants)};
  if (static_cast<size_t>(code.bindings) != uses.size())
    return fail(ErrorCode::internal, code.name, " has ", code.bindings, " buffers, not ", uses.size());
  const uint64_t alignment = device_.features().alignment;
  for (const Use& u : uses) {
    if (u.buffer == nullptr) return fail(ErrorCode::internal, code.name, ": a buffer is missing");
    if (!code.has_starts) continue;
    const auto first = static_cast<uint32_t>(u.offset % alignment / u.element);
    c.params.insert(c.params.end(), reinterpret_cast<const std::byte*>(&first),
                    reinterpret_cast<const std::byte*>(&first + 1));
  }
  c.params.insert(c.params.end(), params.begin(), params.end());
  if (c.params.size() > kMostParameterBytes)
    return fail(ErrorCode::internal, code.name, " has ", c.params.size(), " bytes of parameters");
  c.uses = std::move(uses);
  c.groups = groups;
  return c;
}

Status CommandRecorder::dispatch_bytes(std::string_view code, std::vector<uint32_t> constants, std::vector<Use> uses,
                                       std::span<const std::byte> params, Groups groups, std::optional<Chain> chain) {
  add(MOKA_TRY(command(code, std::move(constants), std::move(uses), params, groups)));
  commands_.back().chain = std::move(chain);
  return {};
}

Status CommandRecorder::dispatch(const Code& code, std::vector<uint32_t> constants, std::vector<Use> uses,
                                 std::span<const std::byte> params, Groups groups) {
  add(MOKA_TRY(command(code, std::move(constants), std::move(uses), params, groups)));
  return {};
}

void CommandRecorder::copy(Use from, Use to) {
  to.written = true;
  from.written = false;
  if (from.bytes == 0) return;
  Command c;
  c.uses = {from, to};
  add(std::move(c));
}

void CommandRecorder::add(Command command) {
  if (step_) command.steps.push_back(*step_);
  commands_.push_back(std::move(command));
}

/// Whether anything reads the value after a command, before all that it reads of it is written again.
bool CommandRecorder::is_needed_after(const Use& value, size_t command) const {
  std::vector<Use> left{value};  // what is not written again
  for (size_t i = command + 1; i < commands_.size() && !left.empty(); i++) {
    for (const Use& u : commands_[i].uses) {
      const bool reads = !u.written || u.keeps_rest;
      if (reads && std::any_of(left.begin(), left.end(), [&](const Use& l) { return u.overlaps(l); })) return true;
    }
    for (const Use& u : commands_[i].uses)
      if (u.written) left = without(left, u);
  }
  return std::any_of(kept_.begin(), kept_.end(), [&](const Use& k) {
    return std::any_of(left.begin(), left.end(), [&](const Use& l) { return k.overlaps(l); });
  });
}

/// Whether a command between two writes any of the values.
bool CommandRecorder::is_written_between(const std::vector<Use>& values, size_t earlier, size_t later) const {
  for (size_t i = earlier + 1; i < later; i++)
    for (const Use& u : commands_[i].uses)
      if (u.written && std::any_of(values.begin(), values.end(), [&](const Use& v) { return u.overlaps(v); }))
        return true;
  return false;
}

bool CommandRecorder::is_untouched_between(const Use& value, size_t earlier, size_t later) const {
  for (size_t i = earlier + 1; i < later; i++)
    for (const Use& u : commands_[i].uses)
      if (u.overlaps(value)) return false;
  return true;
}

/// The command that writes what the command `reader` reads, where nothing else looks at it in between.
std::optional<size_t> CommandRecorder::only_writer(const Use& value, size_t reader) const {
  for (size_t i = reader; i-- > 0;) {
    const Command& c = commands_[i];
    const auto touches = [&](const Use& u) { return u.overlaps(value); };
    if (std::none_of(c.uses.begin(), c.uses.end(), touches)) continue;
    // It may have read the same bytes, which it then replaces.
    const bool writes =
        std::any_of(c.uses.begin(), c.uses.end(), [&](const Use& u) { return u.written && u.is(value); });
    return writes ? std::optional(i) : std::nullopt;
  }
  return std::nullopt;
}

Status CommandRecorder::join_chains() {
  for (size_t later = 0; later < commands_.size(); later++) {
    bool changed = false;
    for (size_t k = 0; commands_[later].chain && k < commands_[later].chain->inputs.size();) {
      const Chain& chain = *commands_[later].chain;
      const Use value = chain.inputs[k].use;
      const auto earlier = only_writer(value, later);
      const bool alone =
          std::count_if(chain.inputs.begin(), chain.inputs.end(), [&](auto& i) { return i.use.overlaps(value); }) == 1;
      std::optional<Chain> both;
      if (earlier && commands_[*earlier].chain && alone &&
          (chain.out.covers(value) || !is_needed_after(value, later)) &&
          !is_written_between(commands_[*earlier].uses, *earlier, later))
        both = joined(*commands_[*earlier].chain, chain, k);
      if (!both) {
        k++;
        continue;
      }
      commands_[later].chain = std::move(both);
      commands_[later].uses = commands_[later].chain->uses();
      commands_[later].steps = both_steps(std::move(commands_[*earlier].steps), commands_[later].steps);
      commands_.erase(commands_.begin() + static_cast<std::ptrdiff_t>(*earlier));
      later--;
      k = 0;
      changed = true;
    }
    if (!changed) continue;
    Chain chain = *commands_[later].chain;
    const ChainParams params(chain);
    std::vector<uint32_t> steps = std::move(commands_[later].steps);
    commands_[later] =
        MOKA_TRY(command(chain.shader(), chain.constants(), chain.uses(),
                         {reinterpret_cast<const std::byte*>(&params), sizeof params}, lines(chain.count())));
    commands_[later].chain = std::move(chain);
    commands_[later].steps = std::move(steps);
  }
  return {};
}

Status CommandRecorder::join_producers() {
  for (size_t later = 0; later < commands_.size(); later++) {
    const Command& c = commands_[later];
    if (!c.absorb) continue;
    const Use value = c.uses[0];
    const auto earlier = only_writer(value, later);
    if (!earlier || !commands_[*earlier].producer) continue;
    const Producer& producer = *commands_[*earlier].producer;
    // Other invocations still read what the producer reads while one writes.
    const bool alone = std::count_if(c.uses.begin(), c.uses.end(), [&](auto& u) { return u.overlaps(value); }) == 1;
    const bool overwrites = std::any_of(c.uses.begin(), c.uses.end(), [&](const Use& u) {
      return u.written &&
             std::any_of(producer.reads.begin(), producer.reads.end(), [&](auto& r) { return u.overlaps(r); });
    });
    if (!alone || overwrites || is_needed_after(value, later) || is_written_between(producer.reads, *earlier, later))
      continue;
    auto both = c.absorb(producer);
    if (!both) continue;
    std::vector<uint32_t> steps = both_steps(std::move(commands_[*earlier].steps), c.steps);
    commands_[later] =
        MOKA_TRY(command(both->shader, std::move(both->constants), std::move(both->uses), both->params, both->groups));
    commands_[later].functions = both->functions;
    commands_[later].steps = std::move(steps);
    commands_.erase(commands_.begin() + static_cast<std::ptrdiff_t>(*earlier));
    later--;
  }
  return {};
}

/// Merges a norm with what writes its input. Where the norm's place does not do, both run where the writer did.
Result<bool> CommandRecorder::join_norm(size_t later) {
  const Norm norm = *commands_[later].norm;
  const auto earlier = only_writer(norm.from, later);
  if (!earlier || !commands_[*earlier].normed) return false;
  const Command& writer = commands_[*earlier];
  if (writer.normed->channels != norm.channels || writer.normed->inner != norm.inner) return false;
  if (!norm.out.is(norm.from)) {
    if (is_needed_after(norm.from, later)) return false;
    // Invocations still read what the writer reads while others write.
    for (const Use& u : writer.uses)
      if (!u.written && u.overlaps(norm.out)) return false;
  }
  const bool moves_down = !is_written_between(writer.uses, *earlier, later);
  if (!moves_down && !is_untouched_between(norm.out, *earlier, later)) return false;
  CommandRecorder again(device_);
  MOKA_TRY(writer.normed->record(again, norm));
  if (again.commands_.size() != 1) return fail(ErrorCode::internal, "a norm joins one dispatch");
  again.commands_[0].steps = both_steps(std::move(commands_[*earlier].steps), commands_[later].steps);
  commands_[moves_down ? later : *earlier] = std::move(again.commands_[0]);
  commands_.erase(commands_.begin() + static_cast<std::ptrdiff_t>(moves_down ? *earlier : later));
  return true;
}

Status CommandRecorder::join_norms() {
  for (size_t i = 0; i < commands_.size(); i++)
    if (commands_[i].norm && MOKA_TRY(join_norm(i))) i--;
  return {};
}

void CommandRecorder::share_code() {
  const auto without_functions = [](const Command& c) {
    Specialized bare = c.run;
    std::fill_n(bare.constants.begin() + static_cast<std::ptrdiff_t>(*c.functions), 2, 0u);
    return bare;
  };
  std::map<Specialized, const Command*> first;  // by what it is without functions
  for (const Command& c : commands_)
    if (c.functions)
      if (Specialized bare = without_functions(c); bare != c.run) first.try_emplace(std::move(bare), &c);
  for (Command& c : commands_)
    if (c.functions)
      if (const auto found = first.find(c.run); found != first.end()) c.run = found->second->run;
}

void CommandRecorder::order() {
  std::vector<Use> pending;  // since the last command that waits
  for (Command& c : commands_) {
    c.waits = std::any_of(c.uses.begin(), c.uses.end(), [&](const Use& now) {
      return std::any_of(pending.begin(), pending.end(),
                         [&](const Use& before) { return (now.written || before.written) && overlap(now, before); });
    });
    if (c.waits) pending.clear();
    pending.insert(pending.end(), c.uses.begin(), c.uses.end());
  }
}

Result<std::vector<Command>> CommandRecorder::finish() {
  MOKA_TRY(join_chains());
  MOKA_TRY(join_norms());
  MOKA_TRY(join_producers());
  share_code();
  order();
  return std::move(commands_);
}

}  // namespace moka::devices::gpu
