// SPDX-License-Identifier: Apache-2.0
#include "ir/text_reader.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/registered.h"
#include "ir/scope.h"
#include "ir/unnamed.h"

namespace moka::ir {

namespace {

constexpr int kMaxBlockDepth = 16;
using TypedName = std::pair<std::string, Type>;

struct Statement {
  size_t start = 0;
  std::vector<TypedName> outputs;
  std::string op;
  std::optional<Opset> opset;
  std::vector<NamedArg> args;
  std::string name;
  bool named = false;
  std::optional<Constant> value;  ///< value of a `const`
  std::vector<Epilogue> epilogue;
  std::map<std::string, Constant> attributes;
};

class Reader {
 public:
  Reader(std::string_view text, const OpTable& table, const TextOptions& options)
      : lexer_(text), table_(table), options_(options) {}

  Result<Program> read() {
    Program program;
    if (!lexer_.accept_word("program")) return lexer_.error("'program'");
    MOKA_TRY(lexer_.expect('('));
    if (lexer_.peek().kind != Token::Kind::number) return lexer_.error("a version number");
    program.version = lexer_.next().text;
    MOKA_TRY(lexer_.expect(')'));
    MOKA_TRY(attributes(program.attributes));
    MOKA_TRY(lexer_.expect('{'));
    while (!lexer_.accept('}')) MOKA_TRY(function(program));
    if (lexer_.peek().kind != Token::Kind::end || !lexer_.status().ok()) return lexer_.error("the end of the text");
    return program;
  }

 private:
  Status attributes(std::map<std::string, Constant>& out) {
    if (!lexer_.accept('[')) return {};
    if (lexer_.accept(']')) return {};
    do {
      const size_t start = lexer_.position();
      std::string key = MOKA_TRY(lexer_.name("the name of an attribute"));
      MOKA_TRY(lexer_.expect('='));
      Constant value = MOKA_TRY(read_value(lexer_, options_));
      if (!out.emplace(std::move(key), std::move(value)).second)
        return lexer_.error_at(start, ErrorCode::malformed, "attribute given twice");
    } while (lexer_.accept(','));
    return lexer_.expect(']');
  }

  Result<std::vector<TypedName>> typed_names() {
    std::vector<TypedName> out;
    MOKA_TRY(lexer_.expect('('));
    if (lexer_.accept(')')) return out;
    do {
      Type type = MOKA_TRY(read_type(lexer_));
      out.emplace_back(MOKA_TRY(lexer_.name("the name of an input")), std::move(type));
    } while (lexer_.accept(','));
    MOKA_TRY(lexer_.expect(')'));
    return out;
  }

  Result<Opset> opset() {
    const auto found =
        lexer_.peek().kind == Token::Kind::identifier ? opset_from_string(lexer_.peek().text) : std::nullopt;
    if (!found) return lexer_.error("an opset such as ios15");
    lexer_.next();
    return *found;
  }

  Status function(Program& program) {
    if (!lexer_.accept_word("func")) return lexer_.error("'func' or '}'");
    const size_t start = lexer_.position();
    std::string name = MOKA_TRY(lexer_.name("the name of a function"));
    if (program.find(name) != nullptr)
      return lexer_.error_at(start, ErrorCode::malformed, cat("function '", name, "' is defined twice"));
    MOKA_TRY(lexer_.expect('<'));
    const Opset version = MOKA_TRY(opset());
    MOKA_TRY(lexer_.expect('>'));
    program.functions.push_back(std::make_unique<Function>(name, version));
    Function& f = *program.functions.back();
    Scope scope;
    const size_t inputs = lexer_.position();
    for (auto& [input, type] : MOKA_TRY(typed_names())) {
      if (scope.find(input) != nullptr)
        return lexer_.error_at(inputs, ErrorCode::malformed, cat("input '", input, "' is declared twice"));
      if (options_.sizes != nullptr) type = with_sizes(std::move(type), *options_.sizes, input);
      scope.add(input, f.body().add_input(f.unique_name(input), std::move(type)));
    }
    MOKA_TRY(attributes(f.attributes));
    Builder builder(table_, f.body());
    f.body().set_outputs(MOKA_TRY(body(builder, scope, 0)));
    return {};
  }

  /// `{ statements } -> (names);`
  Result<std::vector<Value*>> body(Builder& builder, Scope& scope, int depth) {
    if (depth > kMaxBlockDepth) return lexer_.error(cat("blocks nested at most ", kMaxBlockDepth, " deep"));
    MOKA_TRY(lexer_.expect('{'));
    while (!lexer_.accept('}')) MOKA_TRY(statement(builder, scope, depth));
    MOKA_TRY(lexer_.expect_arrow());
    MOKA_TRY(lexer_.expect('('));
    std::vector<Value*> outputs;
    if (!lexer_.peek().is(')')) {
      do outputs.push_back(MOKA_TRY(known(scope)));
      while (lexer_.accept(','));
    }
    MOKA_TRY(lexer_.expect(')'));
    MOKA_TRY(lexer_.expect(';'));
    return outputs;
  }

  Result<Value*> known(const Scope& scope) {
    const size_t start = lexer_.position();
    const std::string name = MOKA_TRY(lexer_.name("the name of a value"));
    Value* v = scope.find(name);
    if (v == nullptr)
      return lexer_.error_at(start, ErrorCode::malformed, cat("expected a value defined before, got '", name, "'"));
    return v;
  }

  /// Whether the statement starts with the type of an output.
  bool at_output() {
    if (lexer_.peek().kind != Token::Kind::identifier) return false;
    const size_t start = lexer_.position();
    const Token first = lexer_.next();
    const Token& second = lexer_.peek();
    const bool compound = first.text == "tensor" || first.text == "list" || first.text == "tuple" ||
                          first.text == "dict" || first.text == "state";
    const bool output =
        second.kind == Token::Kind::identifier || second.kind == Token::Kind::string || (compound && second.is('<'));
    lexer_.seek(start);
    return output;
  }

  Status statement(Builder& builder, Scope& scope, int depth) {
    Statement s;
    s.start = lexer_.position();
    if (at_output()) {
      do {
        Type type = MOKA_TRY(read_type(lexer_));
        const size_t at = lexer_.position();
        std::string name = MOKA_TRY(lexer_.name("the name of an output"));
        if (scope.find(name) != nullptr)
          return lexer_.error_at(at, ErrorCode::malformed, cat("'", name, "' is defined twice"));
        s.outputs.emplace_back(std::move(name), std::move(type));
      } while (lexer_.accept(','));
      MOKA_TRY(lexer_.expect('='));
    }
    s.op = MOKA_TRY(lexer_.name("the name of an operation"));
    if (lexer_.accept('<')) {
      s.opset = MOKA_TRY(opset());
      MOKA_TRY(lexer_.expect('>'));
    }
    MOKA_TRY(arguments(builder, scope, s));
    MOKA_TRY(brackets(builder, s));
    Op* op = nullptr;
    const Opset before = builder.opset;
    if (s.opset) builder.opset = *s.opset;
    if (s.op == "const") {
      op = MOKA_TRY(constant(builder, s));
    } else if (lexer_.peek().is('{')) {
      op = MOKA_TRY(with_blocks(builder, scope, s, depth));
    } else {
      OpSpec spec = spec_of(s);
      if (table_.find(s.op) == nullptr)
        if (auto registered = MOKA_TRY_IN(registered_operation(builder, spec, s.attributes, options_.placeholders),
                                          lexer_.place(s.start)))
          spec = std::move(*registered);
      op = MOKA_TRY_IN(builder.append(std::move(spec)), lexer_.place(s.start));
    }
    builder.opset = before;
    MOKA_TRY(lexer_.expect(';'));
    if (op->output_count() != s.outputs.size())
      return lexer_.error_at(s.start, ErrorCode::malformed,
                             cat("operation '", op->name, "' (", s.op, "): expected ", op->output_count(),
                                 " outputs, got ", s.outputs.size()));
    op->attributes = std::move(s.attributes);
    if (!s.named) mark_unnamed(*op);
    op->epilogue = std::move(s.epilogue);
    for (size_t i = 0; i < s.outputs.size(); ++i) {
      // Outputs of one statement must not share a name either.
      if (scope.find(s.outputs[i].first) != nullptr)
        return lexer_.error_at(s.start, ErrorCode::malformed, cat("'", s.outputs[i].first, "' is defined twice"));
      scope.add(s.outputs[i].first, op->output(i));
    }
    return {};
  }

  static OpSpec spec_of(Statement& s) {
    OpSpec spec;
    spec.op = s.op;
    spec.args = std::move(s.args);
    spec.name = s.name;
    for (const auto& [name, type] : s.outputs) {
      spec.output_names.push_back(name);
      spec.declared.push_back(without_length(type));
    }
    return spec;
  }

  Status arguments(Builder& builder, const Scope& scope, Statement& s) {
    MOKA_TRY(lexer_.expect('('));
    if (lexer_.accept(')')) return {};
    do {
      std::string key = MOKA_TRY(lexer_.name("the name of a parameter"));
      MOKA_TRY(lexer_.expect('='));
      if (lexer_.accept('(')) {
        std::vector<Value*> values;
        if (!lexer_.peek().is(')')) {
          do {
            if (at_value(lexer_)) {
              // Only a whole parameter can be an inline constant.
              std::string name = cat(s.outputs.empty() ? s.op : s.outputs[0].first, "_", key, "_", values.size());
              values.push_back(MOKA_TRY(builder.constant(std::move(name), MOKA_TRY(read_value(lexer_, options_)))));
            } else {
              values.push_back(MOKA_TRY(known(scope)));
            }
          } while (lexer_.accept(','));
        }
        MOKA_TRY(lexer_.expect(')'));
        s.args.emplace_back(std::move(key), std::move(values));
      } else if (at_value(lexer_)) {
        Constant value = MOKA_TRY(read_value(lexer_, options_));
        if (s.op == "const" && key == "val")
          s.value = std::move(value);
        else
          s.args.emplace_back(std::move(key), std::move(value));
      } else {
        s.args.emplace_back(std::move(key), MOKA_TRY(known(scope)));
      }
    } while (lexer_.accept(','));
    return lexer_.expect(')');
  }

  Status brackets(const Builder& builder, Statement& s) {
    std::map<std::string, Constant> given;
    const size_t start = lexer_.position();
    MOKA_TRY(attributes(given));
    const OpDef* def = table_.find(s.op);
    const OpVersion* version = def == nullptr ? nullptr : def->at(s.opset.value_or(builder.opset));
    for (auto& [key, value] : given) {
      if (key == "name") {
        if (!value.type.is_tensor() || value.tensor.dtype() != DType::string || value.tensor.count() != 1)
          return lexer_.error_at(start, ErrorCode::malformed,
                                 cat("attribute name: expected a string, got ", value.type));
        s.name = value.tensor.text();
        s.named = true;
      } else if (s.op == "const" && key == "val") {
        s.value = std::move(value);
      } else if (key == "epilogue") {
        MOKA_TRY(epilogue(start, value, s));
      } else if (version != nullptr && version->param_index(key) >= 0) {
        s.args.emplace_back(key, std::move(value));
      } else {
        s.attributes.emplace(key, std::move(value));
      }
    }
    return {};
  }

  Status epilogue(size_t start, const Constant& value, Statement& s) {
    const Type text = Type::scalar(DType::string);
    const Type number = Type::scalar(DType::fp32);
    const Type entry = Type::tuple({text, number, number, text});
    if (!value.type.is_list() || value.type.element() != entry)
      return lexer_.error_at(start, ErrorCode::malformed,
                             cat("attribute epilogue: expected a list of ", entry, ", got ", value.type));
    for (const Constant& e : value.parts)
      s.epilogue.push_back({e.parts[0].tensor.text(), e.parts[1].tensor.as<float>()[0],
                            e.parts[2].tensor.as<float>()[0], e.parts[3].tensor.text()});
    return {};
  }

  Result<Op*> constant(Builder& builder, Statement& s) {
    if (!s.value) return lexer_.error_at(s.start, ErrorCode::malformed, "const: expected the attribute val");
    if (s.outputs.size() != 1 || !s.args.empty())
      return lexer_.error_at(
          s.start, ErrorCode::malformed,
          cat("const: expected one output and no inputs, got ", s.outputs.size(), " and ", s.args.size()));
    const auto& [name, type] = s.outputs[0];
    if (!is_compatible(s.value->type, type))
      return lexer_.error_at(s.start, ErrorCode::malformed,
                             cat("const '", name, "': expected a value of ", type, ", got ", s.value->type));
    Value* v = MOKA_TRY_IN(builder.constant(name, std::move(*s.value)), lexer_.place(s.start));
    if (!s.name.empty()) v->producer()->name = s.name;
    return v->producer();
  }

  struct BlockText {
    std::string name;
    std::vector<TypedName> inputs;
    size_t body = 0;
  };

  /// `{ block name(inputs) { ... } -> (...); ... }`. Building the first body requires all headers, so the reader skips
  /// the bodies first and returns to them afterwards.
  Result<Op*> with_blocks(Builder& builder, const Scope& scope, Statement& s, int depth) {
    MOKA_TRY(lexer_.expect('{'));
    std::vector<BlockText> texts;
    while (!lexer_.peek().is('}')) {
      if (!lexer_.accept_word("block")) return lexer_.error("'block' or '}'");
      BlockText text;
      if (!lexer_.peek().is('(')) text.name = MOKA_TRY(lexer_.name("the name of a block"));
      text.inputs = MOKA_TRY(typed_names());
      text.body = lexer_.position();
      MOKA_TRY(skip_body());
      texts.push_back(std::move(text));
    }
    const size_t end = lexer_.position();
    std::vector<std::vector<TypedName>> inputs;
    for (const BlockText& text : texts) inputs.push_back(text.inputs);
    const Builder::BlockFn fill = [&](size_t i, Builder& inner) -> Result<std::vector<Value*>> {
      Scope inner_scope(&scope);
      inner.block().name = texts[i].name;
      for (size_t k = 0; k < texts[i].inputs.size(); ++k) {
        const std::string& name = texts[i].inputs[k].first;
        if (inner_scope.find(name) != nullptr)
          return lexer_.error_at(texts[i].body, ErrorCode::malformed, cat("block input '", name, "' is defined twice"));
        inner_scope.add(name, inner.block().inputs()[k].get());
      }
      lexer_.seek(texts[i].body);
      return body(inner, inner_scope, depth + 1);
    };
    OpSpec spec = spec_of(s);
    Op* op = MOKA_TRY_IN(builder.append_with_blocks(std::move(spec), inputs, fill), lexer_.place(s.start));
    lexer_.seek(end);
    MOKA_TRY(lexer_.expect('}'));
    return op;
  }

  Status skip_body() {
    MOKA_TRY(lexer_.expect('{'));
    for (int open = 1; open > 0;) {
      if (lexer_.peek().kind == Token::Kind::end) return lexer_.error("'}'");
      const Token token = lexer_.next();
      if (token.is('{')) ++open;
      if (token.is('}')) --open;
    }
    while (!lexer_.peek().is(';')) {
      if (lexer_.peek().kind == Token::Kind::end) return lexer_.error("';'");
      lexer_.next();
    }
    lexer_.next();
    return {};
  }

  Lexer lexer_;
  const OpTable& table_;
  const TextOptions& options_;
};

}  // namespace

Result<Program> read_text(std::string_view text, const OpTable& table, const TextOptions& options) {
  return Reader(text, table, options).read();
}

}  // namespace moka::ir
