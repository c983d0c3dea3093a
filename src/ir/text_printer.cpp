// SPDX-License-Identifier: Apache-2.0
#include "ir/text_printer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "ir/registered.h"
#include "ir/text_value.h"
#include "ir/unnamed.h"

namespace moka::ir {

void append_float(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "nan";
    return;
  }
  if (std::signbit(v)) out += '-';
  v = std::fabs(v);
  if (std::isinf(v)) {
    out += "inf";
    return;
  }
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::hex);
  out += "0x";
  out.append(buffer, end);
}

void append_name(std::string& out, std::string_view name) {
  if (is_identifier(name))
    out += name;
  else
    append_quoted(out, name);
}

void append_type(std::string& out, const Type& type, Dialect dialect) {
  if (type.is_tensor()) {
    if (dialect == Dialect::bare_scalars && type.is_ranked() && type.rank() == 0)
      append_to(out, type.dtype());
    else
      append_to(out, type);
    return;
  }
  switch (type.kind()) {
    case Type::Kind::list: out += "list<"; break;
    case Type::Kind::tuple: out += "tuple<"; break;
    case Type::Kind::dict: out += "dict<"; break;
    default: out += "state<";
  }
  bool first = true;
  for (const Type& element : type.elements()) {
    if (!std::exchange(first, false)) out += ", ";
    append_type(out, element, dialect);
  }
  if (type.is_list()) {
    out += ", ";
    if (type.length() < 0)
      out += '?';
    else
      moka::append_to(out, type.length());
  }
  out += '>';
}

namespace {

void append_element(std::string& out, const TensorView& t, int64_t i) {
  if (t.dtype == DType::string)
    append_quoted(out, t.as<std::string>()[i]);
  else if (t.dtype == DType::boolean)
    out += load_i64(t, i) != 0 ? "true" : "false";
  else if (is_float(t.dtype))
    append_float(out, load_f64(t, i));
  else if (t.dtype == DType::uint64)
    moka::append_to(out, t.as<uint64_t>()[i]);
  else
    moka::append_to(out, load_i64(t, i));
}

void append_tensor_literal(std::string& out, const TensorView& t) {
  const int rank = t.shape.rank();
  const int64_t count = t.count();
  if (count == 0) {
    out += "[]";
    return;
  }
  const auto strides = t.shape.strides();
  for (int64_t i = 0; i < count; ++i) {
    // A bracket opens and closes at each level whose rows start and end here.
    for (int d = 0; d < rank; ++d)
      if (i % (strides[static_cast<size_t>(d)] * t.shape[d]) == 0) out += '[';
    append_element(out, t, i);
    for (int d = rank - 1; d >= 0; --d)
      if ((i + 1) % (strides[static_cast<size_t>(d)] * t.shape[d]) == 0) out += ']';
    if (i + 1 < count) out += ", ";
  }
}

void append_literal(std::string& out, const Constant& value, Dialect dialect) {
  if (value.type.is_tensor()) {
    if (value.blob_path.empty()) {
      append_tensor_literal(out, value.tensor.view());
      return;
    }
    out += "BLOBFILE(path = ";
    append_value(out, Tensor::text(value.blob_path), dialect);
    out += ", offset = ";
    append_value(out, Tensor::scalar_i64(DType::uint64, static_cast<int64_t>(value.blob_offset)), dialect);
    out += ')';
    return;
  }
  if (value.type.is_dict()) {
    out += '{';
    for (size_t i = 0; i + 1 < value.parts.size(); i += 2) {
      out += i == 0 ? "{" : ", {";
      append_literal(out, value.parts[i], dialect);
      out += ", ";
      append_literal(out, value.parts[i + 1], dialect);
      out += '}';
    }
    out += '}';
    return;
  }
  const bool tuple = value.type.kind() == Type::Kind::tuple;
  out += tuple ? '(' : '[';
  bool first = true;
  for (const Constant& part : value.parts) {
    if (!std::exchange(first, false)) out += ", ";
    append_literal(out, part, dialect);
  }
  out += tuple ? ')' : ']';
}

Constant epilogue_value(const std::vector<Epilogue>& epilogue) {
  const Type text = Type::scalar(DType::string);
  const Type number = Type::scalar(DType::fp32);
  const Type entry = Type::tuple({text, number, number, text});
  std::vector<Constant> parts;
  for (const Epilogue& e : epilogue)
    parts.emplace_back(
        entry, std::vector<Constant>{Tensor::text(e.op), Tensor::scalar(DType::fp32, static_cast<double>(e.alpha)),
                                     Tensor::scalar(DType::fp32, static_cast<double>(e.beta)), Tensor::text(e.origin)});
  return {Type::list(entry, static_cast<int64_t>(parts.size())), std::move(parts)};
}

class Printer {
 public:
  Printer(const Program& program, bool compiled)
      : program_(program), dialect_(dialect_of(program.version)), compiled_(compiled) {}

  std::string print() {
    out_ = cat("program(", program_.version, ")\n");
    if (!program_.attributes.empty()) {
      attributes(program_.attributes);
      out_ += '\n';
    }
    out_ += "{\n";
    for (const auto& f : program_.functions) function(*f);
    out_ += '}';
    return std::move(out_);
  }

 private:
  void indent(int n) { out_.append(static_cast<size_t>(n), ' '); }

  void attributes(const std::map<std::string, Constant>& values) {
    std::map<std::string, const Constant*> pointers;
    for (const auto& [key, value] : values) pointers.emplace(key, &value);
    attributes(pointers);
  }

  void attributes(const std::map<std::string, const Constant*>& values) {
    out_ += '[';
    bool first = true;
    for (const auto& [key, value] : values) {
      if (!std::exchange(first, false)) out_ += ", ";
      append_name(out_, key);
      out_ += " = ";
      append_value(out_, *value, dialect_);
    }
    out_ += ']';
  }

  void typed_names(std::span<const std::unique_ptr<Value>> values, bool sorted = false) {
    std::vector<const Value*> order;
    for (const auto& v : values) order.push_back(v.get());
    if (sorted) std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->name < b->name; });
    bool first = true;
    for (const Value* v : order) {
      if (!std::exchange(first, false)) out_ += ", ";
      append_type(out_, v->type, dialect_);
      out_ += ' ';
      append_name(out_, v->name);
    }
  }

  void function(const Function& f) {
    indent(4);
    out_ += "func ";
    append_name(out_, f.name);
    out_ += cat("<", to_string(f.opset), ">(");
    typed_names(f.body().inputs(), compiled_);
    out_ += ") ";
    if (!f.attributes.empty()) {
      attributes(f.attributes);
      out_ += ' ';
    }
    block_body(f.body(), 4);
  }

  void block_body(const Block& block, int column) {
    out_ += "{\n";
    for (const auto& op : block.ops()) operation(*op, column + 8);
    indent(column + 4);
    out_ += "} -> (";
    bool first = true;
    for (const Value* v : block.outputs()) {
      if (!std::exchange(first, false)) out_ += ", ";
      append_name(out_, v->name);
    }
    out_ += ");\n";
  }

  void operand(const Value& v) {
    if (v.is_inline_constant())
      append_value(out_, *v.constant(), dialect_);
    else
      append_name(out_, v.name);
  }

  /// An operation with registered code, as the model has it.
  void registered(const Op& op, const RegisteredSource& source) {
    append_name(out_, source.op);
    out_ += '(';
    std::map<std::string_view, const RegisteredSource::Argument*> sorted;
    for (const auto& argument : source.arguments) sorted.emplace(argument.name, &argument);
    bool first = true;
    for (const auto& [name, argument] : sorted) {
      out_ += cat(std::exchange(first, false) ? "" : ", ", name, " = ", argument->tuple ? "(" : "");
      for (size_t i = 0; i < argument->values.size(); ++i) {
        if (i > 0) out_ += ", ";
        if (const auto* input = std::get_if<size_t>(&argument->values[i]))
          operand(*op.inputs("inputs")[*input]);
        else
          append_value(out_, std::get<Constant>(argument->values[i]), dialect_);
      }
      if (argument->tuple) out_ += ')';
    }
    out_ += ')';
    std::map<std::string, const Constant*> bracket;
    for (const auto& [key, value] : op.attributes) bracket.emplace(key, &value);
    const Constant name(Tensor::text(op.name));
    bracket["name"] = &name;
    attributes(bracket);
    out_ += ";\n";
  }

  void operation(const Op& op, int column) {
    indent(column);
    for (size_t i = 0; i < op.output_count(); ++i) {
      if (i > 0) out_ += ", ";
      append_type(out_, op.output(i)->type, dialect_);
      out_ += ' ';
      append_name(out_, op.output(i)->name);
    }
    if (op.output_count() > 0) out_ += " = ";
    if (const auto source = compiled_ ? registered_source(op) : nullptr) {
      registered(op, *source);
      return;
    }
    append_name(out_, op.type_name());
    const OpVersion& version = op.version();
    if (version.def->at(op.parent()->function()->opset) != &version) out_ += cat("<", to_string(version.since), ">");

    std::map<std::string_view, const Operand*> arguments;
    std::map<std::string, const Constant*> bracket;
    for (const auto& [key, value] : op.attributes) bracket.emplace(key, &value);
    for (const Operand& o : op.operands()) {
      const ParamDef& p = version.params[static_cast<size_t>(o.param)];
      if (p.attribute && o.values.size() == 1 && o.values[0]->is_inline_constant())
        bracket[p.name] = o.values[0]->constant();
      else
        arguments.emplace(p.name, &o);
    }
    out_ += '(';
    bool first = true;
    for (const auto& [name, o] : arguments) {
      if (!std::exchange(first, false)) out_ += ", ";
      out_ += cat(name, " = ");
      if (!o->tuple) {
        operand(*o->values[0]);
        continue;
      }
      out_ += '(';
      for (size_t i = 0; i < o->values.size(); ++i) {
        if (i > 0) out_ += ", ";
        operand(*o->values[i]);
      }
      out_ += ')';
    }
    out_ += ')';

    const Constant name(Tensor::text(op.name));
    if (compiled_ && is_unnamed(op))
      bracket.erase("name");
    else
      bracket["name"] = &name;
    if (op.has_trait(Trait::constant)) bracket["val"] = op.output()->constant();
    Constant epilogue;
    if (!op.epilogue.empty()) {
      epilogue = epilogue_value(op.epilogue);
      bracket["epilogue"] = &epilogue;
    }
    if (!bracket.empty()) attributes(bracket);
    if (op.block_count() > 0) {
      out_ += " {\n";
      for (size_t i = 0; i < op.block_count(); ++i) {
        const Block& block = *op.block(i);
        indent(column + 4);
        out_ += "block";
        if (!block.name.empty()) {
          out_ += ' ';
          append_name(out_, block.name);
        }
        out_ += '(';
        typed_names(block.inputs());
        out_ += ") ";
        block_body(block, column + 4);
      }
      indent(column);
      out_ += '}';
    }
    out_ += ";\n";
  }

  const Program& program_;
  Dialect dialect_;
  bool compiled_;
  std::string out_;
};

}  // namespace

void append_value(std::string& out, const Constant& value, Dialect dialect) {
  append_type(out, value.type, dialect);
  out += '(';
  append_literal(out, value, dialect);
  out += ')';
}

std::string print_text(const Program& program, bool compiled) { return Printer(program, compiled).print(); }

}  // namespace moka::ir
