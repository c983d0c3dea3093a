// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "ir/text_printer.h"
#include "ir/text_reader.h"
#include "ir/verifier.h"

namespace moka::ir {
namespace {

Result<Program> read(std::string_view text, const TextOptions& options = {}) {
  return read_text(text, ops::table(), options);
}

std::string error_of(std::string_view text) {
  const auto r = read(text);
  return r.ok() ? "no error" : r.error().to_string();
}

std::string in_main(std::string_view statements, std::string_view outputs = "x") {
  return cat("program(1.0)\n{\n    func main<ios15>(tensor<fp32, [2]> x) {\n", statements, "        } -> (", outputs,
             ");\n}");
}

// The forms that Apple's compiler writes, as described in the public notes on compiled models.
constexpr std::string_view kTensorsOnly = R"(program(1.0)
[buildInfo = dict<tensor<string, []>, tensor<string, []>>({{"coremlc-component-MIL", "1.2.3"}, {"coremlc-version", "4.5"}})]
{
    func main<ios16>(tensor<fp16, [1, ?]> x) [FlexibleShapeInformation = tuple<tuple<tensor<string, []>, dict<tensor<string, []>, tensor<int32, [?]>>>, tuple<tensor<string, []>, dict<tensor<string, []>, list<tensor<int32, [2]>, ?>>>>((("DefaultShapes", {{"x", [1, 1]}}), ("RangeDims", {{"x", [[1, 1], [1, 2048]]}})))] {
            tensor<int32, [2]> perm = const()[name = tensor<string, []>("op_1_perm"), val = tensor<int32, [2]>([1, 0])];
            tensor<fp16, [1]> c = const()[name = tensor<string, []>("c"), val = tensor<fp16, [1]>([0x1.18p+6])];
            tensor<fp16, [?, 1]> var_1 = transpose(perm = perm, x = x)[name = tensor<string, []>("op_1_cast_fp16")];
            tensor<fp16, [?, 1]> var_2 = add(x = var_1, y = c)[name = tensor<string, []>("op_2")];
        } -> (var_2);
})";
constexpr std::string_view kBareScalars = R"(program(1.3)
[buildInfo = dict<string, string>({{"coremlc-version", "3600.1"}})]
{
    func main<ios17>(tensor<fp16, [2]> x) {
            fp16 y = const()[name = string("y"), val = fp16(-0x1p-24)];
            tensor<fp16, [2]> sum = add(x = x, y = y)[name = string("sum")];
            tensor<fp32, [2]> out = cast(dtype = string("fp32"), x = sum)[name = string("op_out")];
        } -> (out);
    func second<ios17>(tensor<fp16, [2]> x) {
        } -> (x);
})";

TEST(Text, PrintsBothDialectsAsRead) {
  for (const std::string_view text : {kTensorsOnly, kBareScalars}) {
    const auto program = read(text);
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    EXPECT_EQ(print_text(*program), text);
    EXPECT_TRUE(verify(*program).ok());
  }
}

TEST(Text, NamesValuesAndOperationsApart) {
  const auto program = read(kTensorsOnly);
  ASSERT_TRUE(program.ok());
  const Op& last = *program->functions[0]->body().ops().back();
  EXPECT_EQ(last.name, "op_2");
  EXPECT_EQ(last.output()->name, "var_2");
  EXPECT_EQ(program->functions[0]->attributes.size(), 1u);
}

TEST(Text, BlocksMayRepeatNamesBesideEachOther) {
  const std::string text = in_main(R"(            tensor<bool, []> p = const()[val = tensor<bool, []>(true)];
            tensor<fp32, [2]> y = cond(pred = p) {
                block() { tensor<fp32, [2]> s = add(x = x, y = x); } -> (s);
                block other() { tensor<fp32, [2]> s = mul(x = x, y = x); } -> (s);
            };
)",
                                   "y");
  const auto program = read(text);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_TRUE(verify(*program).ok());
  const Op& cond = *program->functions[0]->body().ops().back();
  ASSERT_EQ(cond.block_count(), 2u);
  EXPECT_NE(cond.block(0)->outputs()[0]->name, cond.block(1)->outputs()[0]->name);
  EXPECT_EQ(cond.block(1)->name, "other");
  const std::string first = print_text(*program);
  const auto again = read(first);
  ASSERT_TRUE(again.ok()) << again.error().to_string() << first;
  EXPECT_EQ(print_text(*again), first);
}

TEST(Text, OddNamesAndEpiloguesComeBack) {
  const std::string text = R"(program(1.3)
{
    func "my function"<ios17>(tensor<fp32, [2]> "light colour") {
            tensor<fp32, [2]> "a/b:0" = add(x = "light colour", y = "light colour")[epilogue = list<tuple<string, fp32, fp32, string>, 1>([("leaky_relu", 0x1p-3, 0x0p+0, "relu \"3\"")]), name = string("tab\there \x01")];
        } -> ("a/b:0");
})";
  const auto program = read(text);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_EQ(print_text(*program), text);
  const Op& op = *program->functions[0]->body().ops().front();
  ASSERT_EQ(op.epilogue.size(), 1u);
  EXPECT_EQ(op.epilogue[0], (Epilogue{"leaky_relu", 0.125f, 0, "relu \"3\""}));
  EXPECT_EQ(op.name, "tab\there \x01");
}

TEST(Text, ErrorsTellLineAndColumn) {
  const auto expect = [](std::string_view text, std::string_view part) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(part), std::string::npos) << "expected \"" << part << "\" in: " << error;
  };
  expect("", "1:1: expected 'program', got the end");
  expect("program(1.0)\n{\n  fun", "3:3: expected 'func' or '}', got 'fun'");
  expect("program(1.0) { # }", "1:16: unexpected character '#'");
  expect("program(1.0)[a = tensor<string, []>(\"x)] {}", "1:37: string without an end");
  expect(in_main("            tensor<fp32, [2]> y = add(x = x, y = z)[name = string(\"y\")];\n"),
         "4:50: expected a value defined before, got 'z'");
  expect(in_main("            tensor<fp32, [2]> x = add(x = x, y = x);\n"), "4:31: 'x' is defined twice");
  expect(in_main("            tensor<fp32, [3]> y = add(x = x, y = x);\n"), "declared tensor<fp32, [3]>");
  expect(in_main("            tensor<fp32, [2]> y = no_such(x = x);\n"), "no_such");
  expect(in_main("            tensor<fp32, [2]> y = add(x = x, y = x, z = x);\n"), "unknown parameter 'z'");
  expect(in_main("            tensor<int8, [1]> y = const()[val = tensor<int8, [1]>([128])];\n"),
         "expected a number of type int8, got number 128");
  expect(in_main("            tensor<uint8, []> y = const()[val = tensor<uint8, []>(-1)];\n"),
         "expected a number of type uint8");
  expect(in_main("            tensor<fp32, [2]> y = const()[val = tensor<fp32, [2]>([0x1p+0])];\n"),
         "expected entries for tensor<fp32, [2]>, got 1 elements");
  expect(in_main("            tensor<fp32, [1]> y = const()[val = tensor<fp32, [1]>([0x1p+0, 0x1p+0])];\n"),
         "expected ']' after 1 entries");
  expect(
      in_main(
          "            tensor<fp32, [2, 2]> y = const()[val = tensor<fp32, [?, ?]>([[0x1p+0], [0x1p+0, 0x1p+0]])];\n"),
      "rows before");
  expect(in_main("            tensor<fp32, [1]> y = const()[val = tensor<fp32, [1]>(BLOBFILE(path = string(\"w\"), "
                 "offset = uint64(64)))];\n"),
         "no weights came with it");
  expect(in_main("            tensor<fp32, [1, 1, 1, 1, 1, 1, 1, 1, 1]> y = add(x = x, y = x);\n"),
         "at most 8 dimensions");
  expect(in_main("", "nothing"), "expected a value defined before, got 'nothing'");
  expect(in_main("            add(x = x, y = x);\n"), "expected 1 outputs, got 0");
}

TEST(Text, HostileNestingAndSizesAreErrors) {
  std::string type, closing;
  for (int i = 0; i < 100000; ++i) type += "list<", closing += ">";
  EXPECT_NE(error_of("program(1.0)[a = " + type).find("nested at most"), std::string::npos);
  // Declared sizes decide no allocation.
  EXPECT_NE(
      error_of(in_main("tensor<fp32, [1000000000000]> y = const()[val = tensor<fp32, [1000000000000]>([0x1p+0])];"))
          .find("got 1 elements"),
      std::string::npos);
  std::string blocks = "program(1.0) { func f<ios15>(tensor<bool, []> p) {";
  for (int i = 0; i < 40; ++i) blocks += cat("tensor<bool, []> y", i, " = cond(pred = p) { block() {");
  EXPECT_NE(error_of(blocks), "no error");
  for (int i = 39; i >= 0; --i) blocks += cat("} -> (", i == 39 ? "p" : cat("y", i + 1), "); block() {} -> (p); };");
  blocks += "} -> (y0); }";
  EXPECT_NE(error_of(blocks).find("nested at most"), std::string::npos);
  MemoryBudget budget(1000);
  TextOptions options;
  options.budget = &budget;
  std::string big = "tensor<int32, [1000]> y = const()[val = tensor<int32, [1000]>([0";
  for (int i = 1; i < 1000; ++i) big += ", 0";
  const auto r = read(in_main(big + "])];\n"), options);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code(), ErrorCode::out_of_budget);
}

TEST(Text, EveryPrefixIsAnErrorOnly) {
  for (const std::string_view text : {kTensorsOnly, kBareScalars})
    for (size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(read(text.substr(0, n)).ok()) << n;
}

TEST(Text, FloatsKeepTheirBits) {
  constexpr int kCount = 65536;
  auto all = Tensor::zeros(DType::fp16, {kCount});
  ASSERT_TRUE(all.ok());
  for (int i = 0; i < kCount; ++i) all->mut<uint16_t>()[static_cast<size_t>(i)] = static_cast<uint16_t>(i);
  Program program;
  program.functions.push_back(std::make_unique<Function>("main", Opset::ios15));
  Block& body = program.functions[0]->body();
  Builder builder(ops::table(), body);
  body.set_outputs({builder.constant("y", *all).value()});
  const auto again = read(print_text(program));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  const Tensor& back = again->functions[0]->body().outputs()[0]->constant()->tensor;
  for (int i = 0; i < kCount; ++i) {
    const bool nan = (i & 0x7c00) == 0x7c00 && (i & 0x3ff) != 0;
    const uint16_t got = back.as<uint16_t>()[static_cast<size_t>(i)];
    if (nan)
      EXPECT_TRUE((got & 0x7c00) == 0x7c00 && (got & 0x3ff) != 0) << i;
    else
      EXPECT_EQ(got, i);
  }
}

TEST(Text, SubByteElementsComeBack) {
  for (const DType t : {DType::int4, DType::uint1, DType::uint2, DType::uint3, DType::uint4, DType::uint6,
                        DType::fp8e4m3fn, DType::bf16}) {
    auto v = Tensor::zeros(t, {3, 7});
    ASSERT_TRUE(v.ok());
    for (int64_t i = 0; i < 21; ++i)
      store_i64(v->view(), i, is_float(t) ? i % 8 : (i * 5) % (t == DType::int4 ? 8 : int64_t{1} << bits(t)));
    Program program;
    program.functions.push_back(std::make_unique<Function>("main", Opset::ios18));
    Block& body = program.functions[0]->body();
    Builder builder(ops::table(), body);
    body.set_outputs({builder.constant("y", *v).value()});
    const auto again = read(print_text(program));
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_TRUE(again->functions[0]->body().outputs()[0]->constant()->tensor == *v) << to_string(t);
  }
}

TEST(Verifier, FindsWhatIsBroken) {
  const auto make = [] { return std::move(read(kTensorsOnly)).value(); };
  const auto expect = [](const Program& p, std::string_view part) {
    const Status s = verify(p);
    ASSERT_FALSE(s.ok()) << part;
    EXPECT_NE(s.error().to_string().find(part), std::string::npos) << s.error().to_string();
  };
  {
    Program p = make();
    p.functions[0]->body().ops().back()->output()->name = "perm";
    expect(p, "two values are named 'perm'");
  }
  {
    Program p = make();
    p.functions[0]->body().ops().back()->output()->type = Type();
    expect(p, "has no type");
  }
  {
    Program p = make();
    Op& transpose = **std::next(p.functions[0]->body().ops().begin(), 2);
    transpose.set_input("x", {p.functions[0]->body().ops().back()->output()});
    expect(p, "not defined before");
    transpose.set_input("x", {p.functions[0]->body().inputs()[0].get()});
    EXPECT_TRUE(verify(p).ok());
    transpose.set_input("x", {});
    expect(p, "parameter 'x' is missing");
    transpose.set_input("x", {p.functions[0]->body().inputs()[0].get()});
  }
}

}  // namespace
}  // namespace moka::ir
