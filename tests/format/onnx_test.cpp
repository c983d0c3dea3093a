// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/half.h"
#include "format/onnx/read.h"
#include "format/onnx/write.h"
#include "format/write_files.h"
#include "temporary_folder.h"

namespace moka::format::onnx {
namespace {

/// Written by the package onnx: helper.make_model with all kinds of tensors, an If, a function and typed inputs.
const std::string kMessages = std::string(MOKA_TEST_DATA) + "/messages.onnx";

template <class T>
T ok(Result<T> r) {
  EXPECT_TRUE(r.ok()) << r.error().to_string();
  return std::move(r).value();
}
template <class T>
std::string refusal(const Result<T>& r) {
  return r.ok() ? "accepted" : r.error().to_string();
}

const Tensor& tensor(const Model& model, const std::string& name) {
  for (const Tensor& t : model.graph.initializers)
    if (t.name == name) return t;
  throw std::runtime_error(name);
}

template <class T>
std::vector<T> values(const Tensor& t, const WeightStore& files = {}) {
  const Bytes bytes = ok(contents(t, files));
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

TEST(Onnx, ReadsElementsOfEachType) {
  const ModelFile file = ok(open_model(kMessages));
  const Model& m = file.model;
  EXPECT_EQ(values<float>(tensor(m, "f")), (std::vector<float>{1.5f, -2, 0.25f, 3}));
  EXPECT_EQ(values<float>(tensor(m, "raw")), (std::vector<float>{4, 5}));
  EXPECT_EQ(values<uint16_t>(tensor(m, "h")), (std::vector<uint16_t>{0x3c00, 0x3800, 0xc000}));
  EXPECT_EQ(values<uint16_t>(tensor(m, "b")), (std::vector<uint16_t>{0x3f80, 0xc040}));
  EXPECT_EQ(values<int8_t>(tensor(m, "i8")), (std::vector<int8_t>{-128, 5, 127}));
  EXPECT_EQ(values<uint8_t>(tensor(m, "u8")), (std::vector<uint8_t>{0, 255}));
  EXPECT_EQ(values<int16_t>(tensor(m, "i16")), (std::vector<int16_t>{-300, 300}));
  EXPECT_EQ(values<int64_t>(tensor(m, "i64")), (std::vector<int64_t>{-1, 0, int64_t{1} << 40}));
  EXPECT_EQ(values<uint32_t>(tensor(m, "u32")), (std::vector<uint32_t>{4000000000}));
  EXPECT_EQ(values<uint64_t>(tensor(m, "u64")), (std::vector<uint64_t>{uint64_t{1} << 63}));
  EXPECT_EQ(values<double>(tensor(m, "d")), (std::vector<double>{1e300, -1}));
  EXPECT_EQ(values<uint8_t>(tensor(m, "bool")), (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(values<uint8_t>(tensor(m, "i4")), (std::vector<uint8_t>{0x78, 0x01}));  // the first element is the low half
  EXPECT_EQ(values<uint8_t>(tensor(m, "u4")), (std::vector<uint8_t>{0x0f, 0x09}));
  EXPECT_EQ(tensor(m, "s").strings, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(refusal(contents(tensor(m, "s"), {})),
            "tensor 's': its elements are of type string, which has no raw form");
}

TEST(Onnx, ReadsGraphsTypesAndFunctions) {
  const Model m = ok(open_model(kMessages)).model;
  EXPECT_EQ(m.ir_version, 10);
  EXPECT_EQ(m.producer_name, "test");
  EXPECT_EQ(m.metadata, (Properties{{"k", "v"}}));
  ASSERT_EQ(m.opsets.size(), 2u);
  EXPECT_EQ(m.opsets[0].version, 17);
  ASSERT_EQ(m.graph.nodes.size(), 3u);
  const Node& branch = m.graph.nodes[0];
  ASSERT_EQ(branch.attributes.size(), 2u);
  EXPECT_EQ(branch.attributes[0].kind, Attribute::Kind::graph);
  EXPECT_EQ(branch.attributes[0].graphs.at(0).nodes.at(0).op_type, "Neg");  // attributes are sorted by name
  const Node& conv = m.graph.nodes[1];
  EXPECT_EQ(conv.inputs, (std::vector<std::string>{"x", "w", ""}));
  EXPECT_EQ(conv.attributes[0].string, "NOTSET");
  EXPECT_EQ(conv.attributes[2].integers, (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_FLOAT_EQ(m.graph.nodes[2].attributes[0].number, 0.25f);
  const auto& shape = *m.graph.inputs[1].type.shape;
  ASSERT_EQ(shape.size(), 4u);
  EXPECT_EQ(shape[0].param, "N");
  EXPECT_EQ(shape[1].value, 3);
  EXPECT_FALSE(shape[2].value.has_value());
  const Type& sequence = m.graph.inputs[2].type;
  EXPECT_EQ(sequence.kind, Type::Kind::sequence);
  EXPECT_EQ(sequence.inner->kind, Type::Kind::optional);
  EXPECT_EQ(sequence.inner->inner->element, DataType::int64);
  EXPECT_FALSE(sequence.inner->inner->shape.has_value());
  ASSERT_EQ(m.functions.size(), 1u);
  EXPECT_EQ(m.functions[0].domain, "dom");
  EXPECT_EQ(m.functions[0].attributes, (std::vector<std::string>{"attr"}));
}

TEST(Onnx, WritesTheBytesOfThePackageOnnx) {
  const Bytes bytes = ok(map_file(kMessages));
  const Written written = ok(write_model(ok(read_model(bytes))));
  EXPECT_EQ(written.model.joined().text(), bytes.text());
  EXPECT_EQ(written.data.size(), 0u);
}

TEST(Onnx, RefusesEveryTruncation) {
  const Bytes bytes = ok(map_file(kMessages));
  const size_t whole = bytes.size();
  int refused = 0;
  for (size_t size = 0; size < whole; ++size) refused += !read_model(bytes.slice(0, size)).ok();
  EXPECT_GT(refused, static_cast<int>(whole * 9 / 10));  // a cut between two fields of the model is a shorter model
}

TEST(Onnx, ReferencesExternalData) {
  const test::TemporaryFolder folder;
  Model m = ok(open_model(kMessages)).model;
  Tensor big;
  big.name = "big";
  big.type = DataType::float32;
  big.dims = {1000};
  std::vector<float> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) / 8;
  big.raw = Bytes::copy_of(std::as_bytes(std::span(numbers)));
  m.graph.initializers = {big, big};
  WriteOptions options;
  options.data_file = "weights.data";
  Written written = ok(write_model(m, options));
  EXPECT_LT(written.model.size(), 2000u);
  const std::string path = (folder / "m.onnx").string();
  ASSERT_TRUE(write_file(path, std::move(written.model)).ok());
  ASSERT_TRUE(write_file((folder / "weights.data").string(), std::move(written.data)).ok());
  ModelFile read = ok(open_model(path));
  for (Tensor& t : read.model.graph.initializers) EXPECT_EQ(values<float>(t, read.files), numbers);

  Tensor t = read.model.graph.initializers[1];
  t.external = {{"location", "../weights.data"}};
  EXPECT_NE(refusal(contents(t, read.files)).find("leads outside of the model"), std::string::npos);
  t.external = {{"location", "weights.data"}, {"offset", "5000"}};
  EXPECT_NE(refusal(contents(t, read.files)).find("'weights.data' has"), std::string::npos);
  t.external = {{"location", "weights.data"}, {"offset", "-1"}};
  EXPECT_NE(refusal(contents(t, read.files)).find("expected a number as offset"), std::string::npos);
}

TEST(Onnx, RefusesContradictions) {
  Tensor t;
  t.name = "t";
  t.type = DataType::float32;
  t.dims = {2};
  t.raw = Bytes::from("12345678");
  EXPECT_TRUE(contents(t, {}).ok());
  t.dims = {3};
  EXPECT_EQ(refusal(contents(t, {})), "tensor 't': expected 12 bytes, got 8");
  t.dims = {-2};
  EXPECT_NE(refusal(contents(t, {})).find("a dimension is -2"), std::string::npos);
  t.dims = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_NE(refusal(contents(t, {})).find("too large"), std::string::npos);
  t.dims = {2};
  t.float_data = *t.raw;
  EXPECT_EQ(refusal(contents(t, {})), "tensor 't': its elements are given more than once");
  t.raw.reset();
  t.type = DataType::int64;
  t.int64_data = Bytes::from("\x01\x80");
  t.float_data = {};
  EXPECT_NE(refusal(contents(t, {})).find("fewer or incomplete"), std::string::npos);
  t.type = static_cast<DataType>(99);
  EXPECT_EQ(refusal(contents(t, {})), "tensor 't': its elements are of type 99, which has no raw form");
}

TEST(Onnx, RefusesDeepNesting) {
  Graph inner;
  for (int i = 0; i < 200; ++i) {
    Attribute a;
    a.name = "body";
    a.kind = Attribute::Kind::graph;
    a.graphs.push_back(std::move(inner));
    Node n;
    n.op_type = "Loop";
    n.attributes.push_back(std::move(a));
    inner = Graph();
    inner.nodes.push_back(std::move(n));
  }
  Model m;
  m.graph = std::move(inner);
  const Bytes bytes = ok(write_model(m)).model.joined();
  EXPECT_NE(refusal(read_model(bytes)).find("nest too deeply"), std::string::npos);
}

}  // namespace
}  // namespace moka::format::onnx
