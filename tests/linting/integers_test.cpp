// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "lint_util.h"

/// Integers that a narrower type does not hold, as coremltools' pass add_int16_cast leaves them, and remainders.
namespace moka::lint_test {
namespace {

lint::Options within(double low, double high, const std::string& name = "ids") {
  lint::Options options;
  options.ranges[name] = {low, high};
  return options;
}

/// The only finding of the rule.
lint::Finding only(const lint::Report& report, const std::string& rule = "narrow-integer") {
  std::vector<lint::Finding> all;
  for (const lint::Finding& f : report.findings)
    if (f.rule == rule) all.push_back(f);
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? lint::Finding{} : all[0];
}

/// ids [1, 3] -> int16 -> squeeze -> int32 -> the rows of a table, counted from the end below 0.
ModelSource lookup(int64_t rows, const std::string& type = "int16") {
  ProgramBuilder b("ios17");
  const Value ids = b.input("ids", DataType::int32, {1, 3});
  const Value narrow = b.op("cast", {{"x", ids}, {"dtype", type}}, "narrow");
  const Value flat = b.op("squeeze", {{"x", narrow}, {"axes", std::vector<int>{0}}}, "flat");
  const Value wide = b.op("cast", {{"x", flat}, {"dtype", "int32"}}, "wide");
  const Value is_right = b.op("greater_equal", {{"x", wide}, {"y", 0}}, "is_right");
  const Value added = b.op("add", {{"x", wide}, {"y", static_cast<int>(rows)}}, "added");
  const Value row = b.op("select", {{"cond", is_right}, {"a", wide}, {"b", added}}, "row");
  b.output(b.op("gather", {{"x", b.constant(noise({rows, 1}), "fp32")}, {"indices", row}, {"axis", 0}}, "y"));
  return b.source();
}

TEST(Integers, IdsBeyondInt16WrapToOtherRows) {
  const lint::Finding f = only(report(lookup(60000), within(0, 40000)));
  EXPECT_EQ(f.level, kError);
  EXPECT_EQ(f.place, "operation 'narrow' (cast)");
  // numpy.int32(40000).astype(numpy.int16) is -25536, the index from the end of row 34464 of 60000.
  EXPECT_EQ(f.evidence,
            "input 'ids' may be 0 to 40000; from 32768 on it wraps: 40000 becomes -25536, which 'y' (gather) reads as "
            "row 34464");
  EXPECT_TRUE(found(lookup(60000), within(0, 32767)).empty());
}

TEST(Integers, ATableLargerThanTheTypeIsAWarning) {
  EXPECT_TRUE(finds(report(lookup(60000)), "narrow-integer", "'narrow'", kWarning));
  EXPECT_TRUE(finds(report(lookup(32769)), "narrow-integer", "'narrow'", kWarning));
  EXPECT_TRUE(found(lookup(32768)).empty());
  EXPECT_TRUE(found(lookup(50)).empty());
}

TEST(Integers, GivenIdsAreMeasured) {
  lint::Options options;
  MultiArray ids(DataType::int32, {1, 3});
  ids.as<int32_t>()[1] = 40000;
  options.inputs = {{{"ids", ids}}};
  const lint::Finding f = only(report(lookup(60000), options));
  EXPECT_EQ(f.level, kError);
  EXPECT_NE(f.evidence.find("40000 becomes -25536"), std::string::npos) << f.evidence;
  ids.as<int32_t>()[1] = 400;
  EXPECT_EQ(only(report(lookup(60000), options)).level, kWarning);
}

/// numbers [1, 8] -> `narrowed` -> sum of them.
ModelSource data(const std::string& type, const std::function<Value(ProgramBuilder&, Value)>& before = nullptr) {
  ProgramBuilder b("ios17");
  Value x = b.input("ids", DataType::int32, {1, 8});
  if (before) x = before(b, x);
  const Value narrow = b.op("cast", {{"x", x}, {"dtype", type}}, "narrow");
  b.output(b.op("cast", {{"x", narrow}, {"dtype", "int32"}}, "y"));
  return b.source();
}

TEST(Integers, DataThatNothingBoundsIsANote) {
  const lint::Finding f = only(report(data("int16")));
  EXPECT_EQ(f.level, kNote);
  EXPECT_EQ(f.evidence, "nothing bounds input 'ids'; from 32768 on it wraps: 32768 becomes -32768");
  // numpy: int32(300).astype(int8) is 44, int32(-1).astype(uint16) is 65535, int32(300).astype(uint8) is 44.
  EXPECT_NE(only(report(data("int8"), within(0, 300))).evidence.find("300 becomes 44"), std::string::npos);
  EXPECT_NE(only(report(data("uint8"), within(0, 300))).evidence.find("300 becomes 44"), std::string::npos);
  EXPECT_NE(only(report(data("uint16"), within(-1, 5))).evidence.find("below 0 it wraps: -1 becomes 65535"),
            std::string::npos);
}

TEST(Integers, BoundedDataIsFine) {
  EXPECT_TRUE(found(data("uint8"), within(0, 255)).empty());
  const auto clipped = [](ProgramBuilder& b, Value x) {
    const Value low = b.op("maximum", {{"x", x}, {"y", 0}}, "low");
    return b.op("minimum", {{"x", low}, {"y", 1000}}, "clipped");
  };
  EXPECT_TRUE(found(data("int16", clipped)).empty());
  const auto remainder = [](ProgramBuilder& b, Value x) { return b.op("mod", {{"x", x}, {"y", 500}}, "rest"); };
  lint::Options options;
  options.only = {"narrow-integer"};
  EXPECT_TRUE(found(data("int16", remainder), options).empty());
  const auto best = [](ProgramBuilder& b, Value x) {
    const Value order = b.ops("topk", {{"x", x}, {"k", 4}, {"axis", 1}})[1];
    return b.op("identity", {{"x", order}}, "places");
  };
  EXPECT_TRUE(found(data("uint8", best), options).empty());
}

/// numbers [1, 8] -> select(number `test` y, a, b) with number + 50000 for the other side of y -> int16.
struct Wrap {
  std::string test;
  int y = 0;
  bool swaps = false;   ///< the operands of the test
  bool adds_if = true;  ///< the branch that adds: that of a true condition
};

ModelSource wrapped(const Wrap& wrap) {
  return data("int16", [&](ProgramBuilder& b, Value x) {
    MultiArray number(DataType::int32, {1});
    number.as<int32_t>()[0] = wrap.y;
    const Value y = b.constant(number, "int32");
    const Value test = wrap.swaps ? b.op(wrap.test, {{"x", y}, {"y", x}}) : b.op(wrap.test, {{"x", x}, {"y", y}});
    const Value added = b.op("add", {{"x", x}, {"y", 50000}}, "added");
    return wrap.adds_if ? b.op("select", {{"cond", test}, {"a", added}, {"b", x}}, "row")
                        : b.op("select", {{"cond", test}, {"a", x}, {"b", added}}, "row");
  });
}

TEST(Integers, AConditionBoundsTheBranchesOfASelect) {
  // All say: add if negative.
  const Wrap negative[] = {{"less", 0},
                           {"less_equal", -1},
                           {"greater", 0, true},
                           {"greater_equal", -1, true},
                           {"greater_equal", 0, false, false},
                           {"greater", -1, false, false},
                           {"less_equal", 0, true, false},
                           {"less", -1, true, false}};
  for (const Wrap& wrap : negative) {
    EXPECT_TRUE(found(wrapped(wrap), within(0, 100)).empty()) << wrap.test << wrap.y;
    const lint::Finding f = only(report(wrapped(wrap), within(-3, 100)));
    EXPECT_NE(f.evidence.find("the result of operation 'row' (select) may be 0 to 49999;"), std::string::npos)
        << wrap.test << wrap.y << ": " << f.evidence;
    EXPECT_EQ(f.level, kError) << wrap.test << wrap.y;
  }
  // These add to 0 and to more as well.
  for (const Wrap& wrap :
       {Wrap{"less_equal", 0}, Wrap{"greater_equal", 0, true}, Wrap{"greater", -5}, Wrap{"less", -5, true}})
    EXPECT_EQ(only(report(wrapped(wrap), within(0, 100))).level, kError) << wrap.test << wrap.y;
}

TEST(Integers, AConditionSaysNothingOfOtherElements) {
  const ModelSource source = data("int16", [](ProgramBuilder& b, Value x) {
    const Value test = b.op("less", {{"x", x}, {"y", 0}}, "test");
    const Value back = b.op("reverse", {{"x", x}, {"axes", std::vector<int>{1}}}, "back");
    return b.op("select", {{"cond", test}, {"a", back}, {"b", x}}, "either");
  });
  EXPECT_NE(only(report(source, within(-1, 50000))).evidence.find("may be -1 to 50000"), std::string::npos);
}

TEST(Integers, FloatsSaturate) {
  ProgramBuilder b("ios17");
  const Value x = b.input("x", DataType::float32, {1, 8});
  const Value narrow = b.op("cast", {{"x", x}, {"dtype", "uint8"}}, "narrow");
  b.output(b.op("cast", {{"x", narrow}, {"dtype", "fp32"}}, "y"));
  EXPECT_NE(only(report(b.source(), within(0, 1000, "x"))).evidence.find("from 256 on it saturates: "),
            std::string::npos);
  EXPECT_TRUE(found(b.source(), within(0, 255, "x")).empty());
}

TEST(Integers, IndicesOfALongAxisWrap) {
  const auto model = [](int64_t size) {
    ProgramBuilder b("ios17");
    const Value x = b.input("x", DataType::float32, {1, size});
    const Value best = b.op("reduce_argmax", {{"x", x}, {"axis", 1}, {"output_dtype", "uint16"}}, "best");
    b.output(b.op("cast", {{"x", best}, {"dtype", "int32"}}, "y"));
    return b.source();
  };
  EXPECT_NE(only(report(model(70000))).evidence.find("69999 becomes 4463"), std::string::npos);
  EXPECT_TRUE(found(model(65536)).empty());
}

TEST(Integers, RemaindersOfDifferentSigns) {
  const auto model = [](int divisor) {
    ProgramBuilder b("ios17");
    b.output(b.op("mod", {{"x", b.input("x", DataType::int32, {1, 4})}, {"y", divisor}}, "y"));
    return b.source();
  };
  const lint::Finding f = only(report(model(3)), "remainder-sign");
  EXPECT_EQ(f.level, kNote);
  EXPECT_EQ(f.place, "operation 'y' (mod)");
  EXPECT_TRUE(found(model(3), within(0, 100, "x")).empty());
  EXPECT_TRUE(found(model(-3), within(-100, -1, "x")).empty());
  EXPECT_FALSE(found(model(-3), within(0, 100, "x")).empty());
}

}  // namespace
}  // namespace moka::lint_test
