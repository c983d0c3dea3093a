// SPDX-License-Identifier: Apache-2.0
#include "plan/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace moka::plan {

namespace {

constexpr size_t kKindColumn = 10;

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

std::string line(std::string_view kind, const std::string& rest, int depth) {
  const std::string indent(2 * static_cast<size_t>(depth), ' ');
  return rest.empty() ? cat(indent, kind, "\n") : cat(indent, padded(std::string(kind), kKindColumn), rest, "\n");
}

/// "conv(x=x, weight=w)".
std::string call_text(const Resolved& r, const ResolvedOp& op) {
  std::string args;
  const auto& params = op.op->version().params;
  for (size_t p = 0; p < params.size(); p++) {
    std::string values;
    for (uint32_t i = op.first[p]; i < op.first[p + 1]; i++)
      values += cat(values.empty() ? "" : ", ", r.at(op.in[i]).value->name);
    if (values.empty()) continue;
    const bool many = op.first[p + 1] - op.first[p] > 1;
    args += cat(args.empty() ? "" : ", ", params[p].name, many ? "=(" : "=", values, many ? ")" : "");
  }
  std::string text = cat(op.op->type_name(), "(", args, ")");
  for (const ir::Epilogue& e : op.op->epilogue) text += cat(" +", e.op);
  for (size_t i = 0; i < op.captured.size(); i++)
    text += cat(i == 0 ? " with " : ", ", r.at(op.captured[i]).value->name);
  return text;
}

std::string results_text(const Resolved& r, const ResolvedOp& op) {
  std::string out;
  for (int i : op.out) out += cat(out.empty() ? "" : ", ", r.at(i).value->name, ": ", r.at(i).type);
  return out.empty() ? cat("'", op.op->name, "'") : out;
}

std::string names_text(const Resolved& r, std::span<const int> values) {
  std::string out;
  for (int i : values) out += cat(out.empty() ? "" : ", ", r.at(i).value->name);
  return out;
}

/// By value: whether an operation or an output reads it. Operands of folded operations are not read any more.
std::vector<bool> read_values(const Resolved& r) {
  std::vector<bool> is_read(r.values.size());
  const auto reads = [&](std::span<const int> values) {
    for (int i : values) is_read[static_cast<size_t>(i)] = true;
  };
  for (const ResolvedOp& op : r.ops) reads(op.in), reads(op.captured);
  if (r.pending) reads(r.pending->in), reads(r.pending->captured);
  reads(r.outputs);
  return is_read;
}

void add_resolved(const Resolved& r, int depth, std::string& out) {
  const std::vector<bool> is_read = read_values(r);
  for (size_t i = 0; i < r.values.size(); i++) {
    const ResolvedValue& v = r.values[i];
    if (v.is_constant() && !is_read[i]) continue;
    const char* kind = v.source == ResolvedValue::Source::input   ? "input"
                       : v.source == ResolvedValue::Source::outer ? "outer"
                       : v.is_constant()                          ? "constant"
                                                                  : nullptr;
    if (kind == nullptr) continue;
    const bool is_later = v.is_constant() && v.constant.empty_handle();
    out += line(kind, cat(v.value->name, ": ", v.type, is_later ? ", expanded on demand" : ""), depth);
  }
  for (const ResolvedOp& op : r.ops) {
    std::string notes;
    if (r.states.views.contains(op.op)) notes += ", a view of the state";
    for (size_t i = 0; i < op.op->output_count(); i++)
      if (const ir::Value* state = r.states.state_of(*op.op->output(i)))
        notes += cat(", in the memory of '", state->name, "'");
    out += line(op.is_alias ? "view" : "compute", cat(results_text(r, op), " = ", call_text(r, op), notes), depth);
    for (const auto& block : op.blocks)
      if (block != nullptr) {
        out += line("block", "", depth + 1);
        add_resolved(*block, depth + 1, out);
      }
  }
  if (r.pending)
    out += line("pending", cat(call_text(r, *r.pending), r.pending_runs_first ? ", which runs first" : ""), depth);
  else
    out += line("output", names_text(r, r.outputs), depth);
}

/// "x=blocked16": the inputs of the operation that are not row-major.
std::string inputs_text(const ResolvedOp& op, std::span<const kernel::Layout> layouts) {
  std::string out;
  const auto& params = op.op->version().params;
  for (size_t p = 0; p < params.size(); p++)
    for (uint32_t i = op.first[p]; i < op.first[p + 1] && i < layouts.size(); i++)
      if (!layouts[i].is_row_major())
        out += cat(out.empty() ? "" : ", ", params[p].name, "=", kernel::to_string(layouts[i]));
  return out;
}

std::string outputs_text(std::span<const kernel::Layout> layouts) {
  std::string out;
  for (const kernel::Layout& l : layouts) out += cat(out.empty() ? "" : ", ", kernel::to_string(l));
  return out;
}

bool is_flat(std::span<const kernel::Layout> layouts) {
  return std::all_of(layouts.begin(), layouts.end(), [](const kernel::Layout& l) { return l.is_row_major(); });
}

std::string microseconds(double seconds) {
  const double us = std::round(seconds * 1e8) / 100;
  return cat(us, " us");
}

void add_claim(const ResolvedOp& op, const Claim& c, std::string& out) {
  if (c.kernel.choice == nullptr) {
    const Refusal& r = c.kernel.refusals.back();
    out += cat("  ", padded(r.device, kKindColumn), "refuses: ", r.reason, "\n");
    return;
  }
  const kernel::KernelChoice& k = *c.kernel.choice;
  out += cat("  ", padded(std::string(c.kernel.device->name()), kKindColumn), k.kernel, ", ", microseconds(k.cost));
  if (!is_flat(c.layouts)) out += cat(", given ", inputs_text(op, c.layouts));
  if (!is_flat(k.in)) out += cat(", reads ", inputs_text(op, k.in));
  if (!is_flat(k.out)) out += cat(", writes ", outputs_text(k.out));
  if (c.kernel.by != ChosenBy::rule) out += cat(", by ", to_string(c.kernel.by));
  out += "\n";
}

std::string_view storage_text(const Place& p) {
  constexpr std::string_view kNames[] = {"arena", "constant", "external", "object", "prepared"};
  return kNames[p.storage.index()];
}

/// "3 (y, blocked16 on gpu)".
std::string place_text(const Sequence& sequence, int i) {
  const Place& p = sequence.place(i);
  std::string notes;
  const auto note = [&](const std::string& text) { notes += cat(notes.empty() ? "" : ", ", text); };
  if (p.value != nullptr) note(p.value->name);
  if (!p.layout.is_row_major()) note(kernel::to_string(p.layout));
  if (p.device != nullptr) note(cat("on ", p.device->name()));
  return notes.empty() ? std::to_string(i) : cat(i, " (", notes, ")");
}

std::string places_text(const Sequence& sequence, std::span<const int> places) {
  std::string out;
  for (int i : places) out += cat(out.empty() ? "" : ", ", place_text(sequence, i));
  return out;
}

/// What a plan was made from, which only some plans keep.
Result<std::shared_ptr<const Resolved>> resolved_of(const Plan& plan, const PlanOptions& options) {
  if (plan.resolved != nullptr) return plan.resolved;
  const Sequence& sequence = plan.sequence;
  const Sequence* before = plan.parent == nullptr ? nullptr : &plan.parent->sequence;
  std::vector<ir::Type> types;
  const bool continues = before != nullptr && before->block == sequence.block;
  if (!continues || before->pending_runs_first())
    for (int i : sequence.inputs) types.push_back(sequence.place(i).type);
  if (!continues)
    return resolve(*sequence.block, types, before == nullptr ? nullptr : plan.parent->resolved.get(),
                   *options.constants);
  const ir::Op& from = before->pending_op();
  for (size_t i = 0; i < from.output_count() && !before->pending_runs_first(); i++) {
    const auto at = sequence.place_of.find(from.output(i));
    if (at == sequence.place_of.end())
      return fail(ErrorCode::internal, "'", from.output(i)->name, "' has no place after '", from.name, "'");
    types.push_back(sequence.place(at->second).type);
  }
  return resolve_rest(*plan.parent->resolved, types, *options.constants);
}

/// Calls `visit(plan, depth, title)` for the plan, the plans of its blocks and what follows it.
template <class Visit>
Status for_each_plan(const Plan& plan, int depth, const std::string& title, Visit&& visit) {
  MOKA_TRY(visit(plan, depth, title));
  const auto blocks_of = [&](const Control* s) -> Status {
    for (size_t b = 0; s != nullptr && b < s->blocks.size(); b++)
      for (const auto& inner : s->blocks[b]->snapshot())
        MOKA_TRY(for_each_plan(*inner, depth + 1, cat("block ", b, " of '", s->op->name, "'"), visit));
    return {};
  };
  for (const Step& s : plan.sequence.steps) MOKA_TRY(blocks_of(control_of(s)));
  if (plan.sequence.is_complete()) return {};
  MOKA_TRY(blocks_of(control_of(*plan.sequence.pending)));
  for (const auto& rest : plan.continuations->snapshot())
    MOKA_TRY(for_each_plan(*rest, depth, cat("after '", plan.sequence.pending_op().name, "'"), visit));
  return {};
}

}  // namespace

std::string to_text(const Resolved& resolved) {
  std::string out;
  add_resolved(resolved, 0, out);
  return out;
}

std::string to_text(const Resolved& resolved, const Claims& claims, const Assignment& assignment) {
  std::string out;
  for (int n : assignment.order) {
    const auto k = static_cast<size_t>(n);
    const ResolvedOp& op = resolved.ops[k];
    const OpClaims& of = claims.ops[k];
    const kernel::Device* device = assignment.device[k];
    out += cat("'", op.op->name, "' (", op.op->type_name(), ")");
    if (of.is_view) out += ", a view";
    if (device != nullptr)
      out += cat(" -> region ", assignment.region[k], " on ", device->name());
    else if (!assignment.is_on_host())
      out += " -> host";
    out += "\n";
    if (of.host) add_claim(op, *of.host, out);
    for (const Claim& c : of.others) add_claim(op, c, out);
  }
  return out;
}

std::string to_text(const Sequence& sequence) {
  std::string out;
  const auto where = [&](int r) { return cat("region ", r, " on ", sequence.region(r).device->name()); };
  for_each_step(sequence, [&]<class One>(int, const One& step, int region) {
    const std::string in = places_text(sequence, reads_of(sequence, step)),
                      results = places_text(sequence, writes_of(sequence, step));
    std::string text = results.empty() ? "" : cat(results, " = ");
    if constexpr (std::is_base_of_v<Call, One>) {
      text += step.op->type_name();
      if (!in.empty()) text += cat("(", in, ")");
    } else if constexpr (std::is_same_v<One, DeviceConvert>) {
      text += cat(step.choice->kernel, "(", in, ")");
    } else {
      text += in;
    }
    if constexpr (std::is_base_of_v<KernelCall, One>) text += cat(" by ", step.choice->kernel);
    if constexpr (requires { step.region; }) text += where(step.region);
    if constexpr (requires { step.from.region; }) text += cat(", ", where(step.from.region));
    if constexpr (requires { step.from.region + step.to.region; }) text += " to";
    if constexpr (requires { step.to.region; }) text += cat(text.ends_with(" to") ? " " : ", ", where(step.to.region));
    if (region >= 0) text += cat(", ", where(region));
    if constexpr (requires { step.threads; })
      if (step.threads > 1) text += cat(", ", step.threads, " threads");
    out += line(One::kKind, text, 0);
  });
  if (sequence.pending)
    out += line("pending",
                cat(sequence.pending_op().type_name(), "(", places_text(sequence, call_of(*sequence.pending)->in), ")"),
                0);
  else
    out += line("output", places_text(sequence, sequence.outputs), 0);
  return out;
}

std::string to_text(const Sequence& sequence, const Memory& memory) {
  std::string out = cat("arena of ", memory.arena_bytes, " bytes on the host\n");
  for (const DeviceArena& a : memory.devices) out += cat("arena of ", a.bytes, " bytes on ", a.device->name(), "\n");
  std::vector<int> order(sequence.places.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int i) -> const Extent& { return memory.places[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return at(a).offset < at(b).offset; });
  for (int i : order) {
    const Place& p = sequence.place(i);
    const Extent& e = at(i);
    if (!p.is<InArena>()) {
      out += line(storage_text(p), place_text(sequence, i), 0);
    } else if (e.life.last >= 0) {
      std::string shared;
      if (p.root != i) shared = cat(", in ", p.root);
      out += line("arena",
                  cat(place_text(sequence, i), ": ", e.bytes, " bytes at ", e.offset, ", steps ", e.life.first, " to ",
                      e.life.last, shared),
                  0);
    }
  }
  return out;
}

Result<std::string> stage_text(const Plan& plan, const PlanOptions& options, std::string_view stage) {
  const std::array known{"resolve", "claim", "arrange", "memory"};
  if (std::find(known.begin(), known.end(), stage) == known.end())
    return fail(ErrorCode::invalid_argument, "stage '", stage, "': expected resolve, claim, arrange or memory");
  std::string out;
  MOKA_TRY(for_each_plan(plan, 0, "", [&](const Plan& p, int depth, const std::string& title) -> Status {
    if (stage == "resolve" && depth > 0) return {};  // the resolved text shows blocks itself
    if (!title.empty()) out += cat("\n", title, "\n");
    if (stage == "arrange" || stage == "memory") {
      out += stage == "arrange" ? to_text(p.sequence) : to_text(p.sequence, p.memory);
      return {};
    }
    const auto resolved = MOKA_TRY(resolved_of(p, options));
    if (stage == "resolve") {
      out += to_text(*resolved);
      return {};
    }
    const Claims claims = MOKA_TRY(claim(*resolved, p.parent, options));
    out += to_text(*resolved, claims, MOKA_TRY(assign(*resolved, claims, options)));
    return {};
  }));
  return out;
}

}  // namespace moka::plan
