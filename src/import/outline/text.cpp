// SPDX-License-Identifier: Apache-2.0
#include "import/outline/parts.h"
#include "ir/text_value.h"

namespace moka::import {
namespace {

using ir::Token;
constexpr int kMaxTextDepth = 16;

/// Reads MIL text without the meaning of its operations; grammar in docs/mil-text.md.
class TextReader {
 public:
  TextReader(std::string_view text, const format::WeightStore& store, Outline& out)
      : lexer_(text), out_(out), files_(store, out) {}

  Status read() {
    if (!lexer_.accept_word("program")) return lexer_.error("'program'");
    MOKA_TRY(lexer_.expect('('));
    lexer_.next();
    MOKA_TRY(lexer_.expect(')'));
    MOKA_TRY(attributes({}, nullptr));
    MOKA_TRY(lexer_.expect('{'));
    while (!lexer_.accept('}')) MOKA_TRY(function());
    return {};
  }

 private:
  /// A value: the text if it is a string, and the weight if it is one.
  struct Value {
    std::string text, shown;
    Outline::Weight weight;
    bool is_weight = false;
  };

  Result<Value> value() {
    const size_t start = lexer_.position();
    const ir::Type type = MOKA_TRY(ir::read_type(lexer_));
    Value out;
    out.weight.type = cat(type);
    MOKA_TRY(lexer_.expect('('));
    if (lexer_.accept_word("BLOBFILE")) {
      MOKA_TRY(lexer_.expect('('));
      do {
        const std::string key = MOKA_TRY(lexer_.name("path or offset"));
        MOKA_TRY(lexer_.expect('='));
        const ir::Constant part = MOKA_TRY(ir::read_value(lexer_, {}));
        if (!part.type.is_tensor() || part.tensor.count() != 1) return lexer_.error("a path or an offset");
        if (part.tensor.dtype() == ir::DType::string)
          out.weight.path = part.tensor.text();
        else
          out.weight.offset = static_cast<uint64_t>(load_i64(part.tensor.view(), 0));
      } while (lexer_.accept(','));
      MOKA_TRY(lexer_.expect(')'));
      MOKA_TRY(lexer_.expect(')'));
      if (type.is_concrete() && type.is_tensor())
        if (auto bytes = ir::storage_bytes(type.dtype(), type.shape()); bytes.ok()) out.weight.bytes = *bytes;
      out.is_weight = true;
      return out;
    }
    lexer_.seek(start);
    const ir::Constant constant = MOKA_TRY(ir::read_value(lexer_, {}));
    out.shown = constant_text(constant);
    if (!constant.type.is_tensor()) return out;
    if (constant.tensor.dtype() == ir::DType::string && constant.tensor.count() == 1) out.text = constant.tensor.text();
    out.is_weight = listed(constant.type, static_cast<uint64_t>(constant.tensor.count()));
    out.weight.type = cat(constant.type);
    out.weight.bytes = constant.tensor.bytes();
    out.weight.storage = "inline";
    if (out.is_weight)
      out.weight.data = {{static_cast<const std::byte*>(constant.tensor.data()), constant.tensor.bytes()},
                         constant.tensor.owner()};
    return out;
  }

  void add(std::string name, Value value) {
    if (!value.is_weight) return;
    value.weight.name = std::move(name);
    value.weight.owner = owner_;
    if (value.weight.storage.empty())
      files_.add(std::move(value.weight));
    else
      out_.weights.push_back(std::move(value.weight));
  }

  /// Reads `[key = value, ...]`, if present, and completes the operation with it.
  Status attributes(std::vector<std::pair<std::string, Value>> given, Outline::Operation* op) {
    if (lexer_.accept('[') && !lexer_.accept(']')) {
      do {
        std::string key = MOKA_TRY(lexer_.name("the name of an attribute"));
        MOKA_TRY(lexer_.expect('='));
        given.emplace_back(std::move(key), MOKA_TRY(value()));
      } while (lexer_.accept(','));
      MOKA_TRY(lexer_.expect(']'));
    }
    if (op == nullptr) return {};
    for (const auto& [key, v] : given)
      if (key == "name") op->name = v.text;
    if (op->name.empty()) op->name = op->outputs.empty() ? op->type : op->outputs[0].first;
    const bool constant = op->type == "const" && !op->outputs.empty();
    for (auto& [key, v] : given) {
      if (key == "name") continue;
      if (!v.shown.empty()) op->values.emplace_back(key, v.shown);
      add(constant ? op->outputs[0].first : cat(op->name, ".", key), std::move(v));
      if (!constant) op->inputs.emplace_back(key, std::vector<std::string>());
    }
    return {};
  }

  Result<std::vector<Outline::Typed>> typed_names() {
    std::vector<Outline::Typed> out;
    MOKA_TRY(lexer_.expect('('));
    if (lexer_.accept(')')) return out;
    do {
      const ir::Type type = MOKA_TRY(ir::read_type(lexer_));
      out.emplace_back(MOKA_TRY(lexer_.name("the name of an input")), cat(type));
    } while (lexer_.accept(','));
    MOKA_TRY(lexer_.expect(')'));
    return out;
  }

  Result<std::string> in_angles(std::string_view what) {
    if (!lexer_.accept('<')) return std::string();
    std::string text = MOKA_TRY(lexer_.name(what));
    MOKA_TRY(lexer_.expect('>'));
    return text;
  }

  Status function() {
    if (!lexer_.accept_word("func")) return lexer_.error("'func' or '}'");
    // Added before the body is read, so that the operations before an error are kept.
    out_.functions.emplace_back();
    Outline::Function& f = out_.functions.back();
    f.name = owner_ = MOKA_TRY(lexer_.name("the name of a function"));
    f.opset = opset_name(MOKA_TRY(in_angles("an opset")));
    f.body.inputs = MOKA_TRY(typed_names());
    MOKA_TRY(attributes({}, nullptr));
    return body(f.body, 0);
  }

  /// `{ statements } -> (names);`
  Status body(Outline::Block& block, int depth) {
    if (depth > kMaxTextDepth) return lexer_.error(cat("blocks nested at most ", kMaxTextDepth, " deep"));
    MOKA_TRY(lexer_.expect('{'));
    while (!lexer_.accept('}')) {
      block.operations.emplace_back();
      const Status read = statement(block.operations.back(), depth);
      if (!read.ok()) {
        if (block.operations.back().type.empty()) block.operations.pop_back();
        return fail(read.error().code(), read.error().to_string());
      }
    }
    MOKA_TRY(lexer_.expect_arrow());
    MOKA_TRY(lexer_.expect('('));
    if (!lexer_.peek().is(')')) {
      do block.outputs.push_back(MOKA_TRY(lexer_.name("the name of a value")));
      while (lexer_.accept(','));
    }
    MOKA_TRY(lexer_.expect(')'));
    return lexer_.expect(';');
  }

  /// Whether the statement starts with the type of an output.
  bool at_output() {
    const size_t start = lexer_.position();
    const Token first = lexer_.next();
    const Token second = lexer_.peek();
    lexer_.seek(start);
    if (first.kind != Token::Kind::identifier) return false;
    const bool compound = first.text == "tensor" || first.text == "list" || first.text == "tuple" ||
                          first.text == "dict" || first.text == "state";
    return second.kind == Token::Kind::identifier || second.kind == Token::Kind::string || (compound && second.is('<'));
  }

  Status statement(Outline::Operation& op, int depth) {
    if (at_output()) {
      do {
        const ir::Type type = MOKA_TRY(ir::read_type(lexer_));
        op.outputs.emplace_back(MOKA_TRY(lexer_.name("the name of an output")), cat(type));
      } while (lexer_.accept(','));
      MOKA_TRY(lexer_.expect('='));
    }
    op.type = MOKA_TRY(lexer_.name("the name of an operation"));
    MOKA_TRY(in_angles("an opset"));
    std::vector<std::pair<std::string, Value>> inline_values;
    MOKA_TRY(arguments(op, inline_values));
    MOKA_TRY(attributes(std::move(inline_values), &op));
    if (lexer_.accept('{')) {
      while (!lexer_.accept('}')) {
        if (!lexer_.accept_word("block")) return lexer_.error("'block' or '}'");
        if (!lexer_.peek().is('(')) MOKA_TRY(lexer_.name("the name of a block"));
        op.blocks.emplace_back();
        op.blocks.back().inputs = MOKA_TRY(typed_names());
        MOKA_TRY(body(op.blocks.back(), depth + 1));
      }
    }
    return lexer_.expect(';');
  }

  /// Constants written as arguments are treated like attributes in brackets.
  Status arguments(Outline::Operation& op, std::vector<std::pair<std::string, Value>>& inline_values) {
    MOKA_TRY(lexer_.expect('('));
    if (lexer_.accept(')')) return {};
    do {
      const std::string key = MOKA_TRY(lexer_.name("the name of a parameter"));
      MOKA_TRY(lexer_.expect('='));
      std::vector<std::string> names;
      const bool several = lexer_.accept('(');
      if (!several && ir::at_value(lexer_)) {
        inline_values.emplace_back(key, MOKA_TRY(value()));
        continue;
      }
      if (!several || !lexer_.peek().is(')')) {
        do {
          if (ir::at_value(lexer_))
            inline_values.emplace_back(key, MOKA_TRY(value()));
          else
            names.push_back(MOKA_TRY(lexer_.name("the name of a value")));
        } while (several && lexer_.accept(','));
      }
      if (several) MOKA_TRY(lexer_.expect(')'));
      if (!names.empty()) op.inputs.emplace_back(key, std::move(names));
    } while (lexer_.accept(','));
    return lexer_.expect(')');
  }

  ir::Lexer lexer_;
  Outline& out_;
  WeightFiles files_;
  std::string owner_;
};

}  // namespace

void outline_text(std::string_view text, const format::WeightStore& store, Outline& out) {
  Status read;
  {
    TextReader reader(text, store, out);
    read = reader.read();
  }
  if (!read.ok()) out.faults.push_back(cat("model.mil: ", read.error().to_string()));
}

}  // namespace moka::import
