// SPDX-License-Identifier: Apache-2.0
#include "ir/program.h"

#include <algorithm>

namespace moka::ir {

namespace {
template <class T>
void remove_one(std::vector<T*>& v, T* x) {
  auto it = std::find(v.rbegin(), v.rend(), x);
  if (it != v.rend()) v.erase(std::next(it).base());
}
}  // namespace

Op::~Op() {
  for (Operand& o : operands_)
    for (Value* v : o.values) remove_one(v->users_, this);
  blocks_.clear();
}

Value* Op::add_output(std::string name, Type type) {
  auto v = std::make_unique<Value>();
  v->name = std::move(name);
  v->type = std::move(type);
  v->producer_ = this;
  v->index_ = static_cast<int>(outputs_.size());
  outputs_.push_back(std::move(v));
  return outputs_.back().get();
}

Value* Op::input(std::string_view param) const {
  auto v = inputs(param);
  return v.empty() ? nullptr : v[0];
}

std::span<Value* const> Op::inputs(std::string_view param) const {
  int p = version_->param_index(param);
  for (const Operand& o : operands_)
    if (o.param == p) return o.values;
  return {};
}

void Op::replace_input(Value* from, Value* to) {
  for (Operand& o : operands_)
    for (Value*& v : o.values)
      if (v == from) {
        v = to;
        remove_one(from->users_, this);
        to->users_.push_back(this);
      }
}

void Op::set_input(std::string_view param, std::vector<Value*> values, bool tuple) {
  int p = version_->param_index(param);
  if (p < 0) std::abort();
  auto it = std::find_if(operands_.begin(), operands_.end(), [&](const Operand& o) { return o.param >= p; });
  if (it != operands_.end() && it->param == p) {
    for (Value* v : it->values) remove_one(v->users_, this);
    if (values.empty() && !tuple) {
      operands_.erase(it);
      return;
    }
  } else {
    if (values.empty() && !tuple) return;
    it = operands_.insert(it, Operand{p, {}, tuple});
  }
  for (Value* v : values) v->users_.push_back(this);
  it->values = std::move(values);
  it->tuple = tuple;
}

Value* Op::set_constant(std::string_view param, Constant value) {
  auto v = std::make_unique<Value>();
  v->type = value.type;
  v->constant_ = std::make_shared<const Constant>(std::move(value));
  Value* raw = v.get();
  inline_constants_.push_back(std::move(v));
  set_input(param, {raw});
  return raw;
}

Value* Block::add_input(std::string name, Type type) {
  auto v = std::make_unique<Value>();
  v->name = std::move(name);
  v->type = std::move(type);
  v->block_ = this;
  v->index_ = static_cast<int>(inputs_.size());
  inputs_.push_back(std::move(v));
  return inputs_.back().get();
}

void Block::erase_unused_inputs() {
  std::erase_if(inputs_, [](const auto& v) { return !v->is_used(); });
  for (size_t i = 0; i < inputs_.size(); i++) inputs_[i]->index_ = static_cast<int>(i);
}

void Block::set_outputs(std::vector<Value*> outputs) {
  for (Value* v : outputs_) remove_one(v->returned_by_, this);
  outputs_ = std::move(outputs);
  for (Value* v : outputs_) v->returned_by_.push_back(this);
}

void Block::replace_output(Value* from, Value* to) {
  for (Value*& v : outputs_)
    if (v == from) {
      v = to;
      remove_one(from->returned_by_, this);
      to->returned_by_.push_back(this);
    }
}

std::list<std::unique_ptr<Op>>::const_iterator Block::erase(Op* op) { return ops_.erase(op->self_); }

void Block::move_before(Op* op, Op* other) { ops_.splice(other->self_, ops_, op->self_); }

Block::~Block() {
  for (Value* v : outputs_) remove_one(v->returned_by_, this);
  // Later operations use values of earlier ones, so they are destroyed in reverse order.
  while (!ops_.empty()) ops_.pop_back();
}

Function::Function(std::string n, Opset o) : name(std::move(n)), opset(o), body_(new Block(this, nullptr)) {}

namespace {
void number_block(const Block& b, const std::function<void(Value*)>& f) {
  for (const auto& v : b.inputs()) f(v.get());
  for (const auto& op : b.ops()) {
    for (const Operand& o : op->operands())
      for (Value* v : o.values)
        if (v->is_inline_constant()) f(v);
    for (size_t i = 0; i < op->block_count(); i++) number_block(*op->block(i), f);
    for (size_t i = 0; i < op->output_count(); i++) f(op->output(i));
  }
}
}  // namespace

uint32_t Function::renumber() {
  next_id_ = 0;
  number_block(*body_, [&](Value* v) { v->id_ = next_id_++; });
  return next_id_;
}

std::string Function::unique_name(std::string_view base) {
  auto it = names_.find(base);
  if (it == names_.end()) {
    names_.emplace(std::string(base), 0);
    return std::string(base);
  }
  for (;;) {
    std::string n = cat(base, "_", ++it->second);
    if (!names_.contains(n)) {
      names_.emplace(n, 0);
      return n;
    }
  }
}

void Function::replace_all_uses(Value* from, Value* to) {
  // A new operation replaces one that the source computes in float16.
  const bool is_new = to->producer() != nullptr && to->users().empty() && to->returned_by().empty();
  if (is_new && from->half && to->type.is_tensor() && to->type.dtype() == DType::fp32) to->half = true;
  auto users = from->users();
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  for (Op* u : users) u->replace_input(from, to);
  auto blocks = from->returned_by();
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  for (Block* b : blocks) b->replace_output(from, to);
}

Function* Program::find(std::string_view name) const {
  for (const auto& f : functions)
    if (f->name == name) return f.get();
  return nullptr;
}

StaticCall::StaticCall(const Op& op) {
  const OpVersion& version = op.version();
  size_t count = 0;
  for (const Operand& o : op.operands()) count += o.values.size();
  views_.reserve(count);
  first_.assign(version.params.size() + 1, 0);
  auto operand = op.operands().begin();
  for (size_t p = 0; p < version.params.size(); p++) {
    first_[p] = static_cast<uint32_t>(args_.size());
    if (operand == op.operands().end() || operand->param != static_cast<int>(p)) continue;
    for (Value* v : operand->values) {
      const TensorView* view = nullptr;
      if (v->constant() != nullptr && !v->constant()->tensor.empty_handle()) {
        views_.push_back(v->constant()->tensor.view());
        view = &views_.back();
      }
      args_.push_back({&v->type, view});
    }
    ++operand;
  }
  first_.back() = static_cast<uint32_t>(args_.size());
  call_.emplace(version, op.name, args_, first_);
  call_->op = &op;
}

NamedArg::NamedArg(std::string n, Value* v) : name(std::move(n)), values{v} {}
NamedArg::NamedArg(std::string n, std::vector<Value*> v) : name(std::move(n)), values(std::move(v)), tuple(true) {}
NamedArg::NamedArg(std::string n, Constant c) : name(std::move(n)), constant(std::move(c)) {}
NamedArg::NamedArg(std::string n, Tensor t) : NamedArg(std::move(n), Constant(std::move(t))) {}
NamedArg::NamedArg(std::string n, const char* text) : NamedArg(std::move(n), Tensor::text(text)) {}
NamedArg::NamedArg(std::string n, std::string text) : NamedArg(std::move(n), Tensor::text(std::move(text))) {}
NamedArg::NamedArg(std::string n, bool v) : NamedArg(std::move(n), Tensor::boolean(v)) {}
NamedArg::NamedArg(std::string n, int v) : NamedArg(std::move(n), Tensor::scalar_i64(DType::int32, v)) {}
NamedArg::NamedArg(std::string n, float v) : NamedArg(std::move(n), Tensor::scalar(DType::fp32, v)) {}
NamedArg::NamedArg(std::string n, const Ints& v) : NamedArg(std::move(n), Tensor::i32(v.span())) {}
NamedArg::NamedArg(const NamedArg&) = default;
NamedArg::NamedArg(NamedArg&&) noexcept = default;
NamedArg& NamedArg::operator=(const NamedArg&) = default;
NamedArg& NamedArg::operator=(NamedArg&&) noexcept = default;
NamedArg::~NamedArg() = default;

}  // namespace moka::ir
