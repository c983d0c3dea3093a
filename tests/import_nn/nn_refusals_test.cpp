// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "import_nn/nn_net.h"

namespace moka::test {

namespace {

using Layer = Net::Layer;

TEST(NnRefusals, JumpOutsideOfALoop) {
  Net n;
  n.layer("j", {}, {})->mutable_loopbreak();
  n.expect_refused(ErrorCode::unsupported, "layer 'j' (loopBreak): a jump outside of a loop's body");
}

TEST(NnRefusals, JumpInACondition) {
  Net n;
  n.input("x", {1});
  auto* loop = n.layer("l", {}, {})->mutable_loop();
  loop->set_conditionvar("x");
  Net::add(*loop->mutable_conditionnetwork()->mutable_layers(), "j", {}, {})->mutable_loopcontinue();
  n.expect_refused(ErrorCode::unsupported, "layer 'j' (loopContinue): a jump outside of a loop's body");
}

/// Each branch doubles the number of paths.
TEST(NnRefusals, TooManyWaysThroughALoop) {
  for (int branches : {3, 6}) {
    Net n;
    n.input("x", {1});
    auto* loop = n.layer("l", {}, {})->mutable_loop();
    loop->set_maxloopiterations(3);
    for (int i = 0; i < branches; i++) {
      auto* outer = Net::add(*loop->mutable_bodynetwork()->mutable_layers(), cat("b", i), {"x"}, {})->mutable_branch();
      auto* inner = Net::add(*outer->mutable_ifbranch()->mutable_layers(), "c", {"x"}, {})->mutable_branch();
      Net::add(*inner->mutable_ifbranch()->mutable_layers(), "j", {}, {})->mutable_loopbreak();
    }
    if (branches == 6) {
      n.expect_refused(ErrorCode::unsupported, "layer 'l' (loop): more than 64 ways through a body");
    } else {
      auto network = n.import();
      EXPECT_TRUE(network.ok()) << network.error().to_string();
    }
  }
}

/// Layers whose parameters depend on the rank need to know it.
TEST(NnRefusals, BlobOfUnknownRank) {
  Net n;
  n.input("n", {ir::kAnyDim});
  n.layer("f", {"n"}, {"full"})->mutable_filldynamic()->set_value(2);
  auto network = n.import("full");
  ASSERT_TRUE(network.ok()) << network.error().to_string();
  auto results = run(*network, {{"n", ir::Tensor::f32({3}, std::vector<float>{2, 1, 2})}});
  ASSERT_TRUE(results.ok()) << results.error().to_string();
  EXPECT_EQ(results->at("full").tensor.shape().to_vector(), (std::vector<int64_t>{2, 1, 2}));
  n.layer("l", {"full"}, {"y"})->mutable_lowertriangular();
  n.layer("e", {"full"}, {"z"})->mutable_rankpreservingreshape()->add_targetshape(1);
  n.expect_refused(ErrorCode::unsupported,
                   "layer 'e' (rankPreservingReshape): input 'full': a blob whose rank is known only when it runs",
                   "z");
}

/// No size follows from the number of elements when it is 0.
TEST(NnRefusals, FreeSizeOfAnEmptyBlob) {
  Net n;
  n.input("x", {0, 3, 4});
  auto* p = n.layer("r", {"x"}, {"y"})->mutable_rankpreservingreshape();
  for (int64_t size : {0, 2, -1}) p->add_targetshape(size);
  n.expect_refused(ErrorCode::malformed,
                   "layer 'r' (rankPreservingReshape): a target dimension of -1 beside one of size 0, which leaves it "
                   "undetermined",
                   "y");
}

/// A rank that a layer's parameters say must be that of the blob.
TEST(NnRefusals, RankThatIsNotTheSaidOne) {
  Net n;
  n.input("n", {ir::kAnyDim});
  n.layer("f", {"n"}, {"full"})->mutable_filldynamic()->set_value(2);
  auto* t = n.layer("t", {"full"}, {"y"})->mutable_transpose();
  for (int axis : {1, 0}) t->add_axes(static_cast<uint64_t>(axis));
  auto network = n.import("y");
  ASSERT_TRUE(network.ok()) << network.error().to_string();
  EXPECT_TRUE(run(*network, {{"n", ir::Tensor::f32({2}, std::vector<float>{2, 3})}}).ok());
  auto wrong = run(*network, {{"n", ir::Tensor::f32({3}, std::vector<float>{2, 1, 2})}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().code(), ErrorCode::internal) << wrong.error().to_string();
}

TEST(NnRefusals, LabelsThatDoNotFit) {
  proto::Model model;
  model.set_specificationversion(4);
  auto* x = model.mutable_description()->add_input();
  x->set_name("x");
  x->mutable_type()->mutable_multiarraytype()->set_datatype(proto::ArrayFeatureType::FLOAT32);
  x->mutable_type()->mutable_multiarraytype()->add_shape(20);
  auto* label = model.mutable_description()->add_output();
  label->set_name("label");
  label->mutable_type()->mutable_int64type();
  model.mutable_description()->set_predictedfeaturename("label");
  auto* c = model.mutable_neuralnetworkclassifier();
  c->set_arrayinputshapemapping(proto::EXACT_ARRAY_MAPPING);
  Net::add(*c->mutable_layers(), "s", {"x"}, {"p"})->mutable_softmaxnd()->set_axis(-1);
  for (int i = 0; i < 10; ++i) c->mutable_int64classlabels()->add_vector(i);
  const auto import = [&] {
    auto file = format::open_model_bytes(Bytes::from(model.SerializeAsString()), {});
    EXPECT_TRUE(file.ok());
    return import::import_model(*file, {});
  };
  auto refused = import();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::malformed);
  EXPECT_NE(refused.error().to_string().find("10 class labels, but the layer that gives 'p' gives 20 probabilities"),
            std::string::npos)
      << refused.error().to_string();
  for (int i = 10; i < 20; ++i) c->mutable_int64classlabels()->add_vector(i);
  auto good = import();
  EXPECT_TRUE(good.ok()) << good.error().to_string();

  // Layers that the outputs do not need may be of any kind, but layers that they need may not.
  Net::add(*c->mutable_layers(), "loss", {"p"}, {"loss"})->mutable_custom()->set_classname("Loss");
  Net::add(*c->mutable_layers(), "behind", {"loss"}, {"behind"})->mutable_activation()->mutable_relu();
  c->set_labelprobabilitylayername("p");
  good = import();
  EXPECT_TRUE(good.ok()) << good.error().to_string();
  c->set_labelprobabilitylayername("behind");
  refused = import();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  EXPECT_NE(refused.error().to_string().find("'Loss'"), std::string::npos) << refused.error().to_string();
}

TEST(NnRefusals, ConcatOfRanksThatDoNotFit) {
  Net n;
  n.input("a", {2, 3});
  n.input("b", {2, 2, 3});
  n.layer("c", {"a", "b"}, {"y"})->mutable_concatnd()->set_axis(0);
  n.expect_refused(ErrorCode::malformed, "layer 'c' (concatND): input 'b': expected rank 2, as input 'a' has, got");
}

/// An axis to squeeze whose size is known only at run time must then be 1.
TEST(NnRefusals, SqueezeOfASizeThatIsNotOne) {
  Net n;
  n.input("x", {ir::kAnyDim, ir::kAnyDim});
  n.layer("s", {"x"}, {"y"})->mutable_squeeze()->add_axes(0);
  auto network = n.import("y");
  ASSERT_TRUE(network.ok()) << network.error().to_string();
  auto fits = run(*network, {{"x", ir::Tensor::f32({1, 4}, std::vector<float>{1, 2, 3, 4})}});
  ASSERT_TRUE(fits.ok()) << fits.error().to_string();
  EXPECT_EQ(fits->at("y").tensor.shape().to_vector(), (std::vector<int64_t>{4}));
  EXPECT_FALSE(run(*network, {{"x", ir::Tensor::f32({2, 2}, std::vector<float>{1, 2, 3, 4})}}).ok());
}

/// The only dimension that may exceed 1 is kept, whatever its size.
TEST(NnRefusals, SqueezeOfAllAxes) {
  for (int64_t size : {1, 3}) {
    Net n;
    n.input("x", {1, ir::kAnyDim, 1});
    n.layer("s", {"x"}, {"v"})->mutable_squeeze()->set_squeezeall(true);
    n.layer("a", {"v"}, {"y"})->mutable_activation()->mutable_relu();
    auto network = n.import("y");
    ASSERT_TRUE(network.ok()) << network.error().to_string();
    EXPECT_EQ(network->function->body().outputs()[0]->type.rank(), 1);
    auto y = run(*network, {{"x", ir::Tensor::f32({1, size, 1}, std::vector<float>(static_cast<size_t>(size), 2))}});
    ASSERT_TRUE(y.ok()) << y.error().to_string();
    EXPECT_EQ(y->at("y").tensor.shape().to_vector(), (std::vector<int64_t>{size}));
  }
  Net two;
  two.input("x", {ir::kAnyDim, ir::kAnyDim});
  two.layer("s", {"x"}, {"y"})->mutable_squeeze()->set_squeezeall(true);
  two.expect_refused(ErrorCode::unsupported, "layer 's' (squeeze): squeezing all axes of an input with 2 dimensions");
}

void far_windows(Net& n, const ir::Shape& shape) {
  n.input("x", shape);
  auto* p = n.layer("p", {"x"}, {"y"})->mutable_pooling();
  p->set_type(proto::PoolingLayerParams::MAX);
  for (int i = 0; i < 2; i++) {
    p->add_kernelsize(1);
    p->add_stride(2);
  }
  p->mutable_includelastpixel();
}

/// ceil((4 - 1) / 2) + 1 = 3 windows, the third of which begins at 4 and has no maximum. How many windows there are is
/// decided for known sizes.
TEST(NnRefusals, LastWindowBehindTheInput) {
  Net fixed;
  far_windows(fixed, {1, 1, 5, 4});
  auto network = fixed.import("y");
  ASSERT_TRUE(network.ok()) << network.error().to_string();
  auto y = run(*network, {{"x", ir::Tensor::f32({1, 1, 5, 4}, std::vector<float>(20, 1))}});
  ASSERT_TRUE(y.ok()) << y.error().to_string();
  const ir::Tensor& t = y->at("y").tensor;
  EXPECT_EQ(t.shape().to_vector(), (std::vector<int64_t>{1, 1, 3, 3}));
  for (int64_t i = 0; i < t.count(); i++)
    EXPECT_EQ(ir::load_f64(t.view(), i), i % 3 == 2 ? -std::numeric_limits<double>::infinity() : 1.0) << i;
  Net flexible;
  far_windows(flexible, {1, 1, ir::kAnyDim, ir::kAnyDim});
  flexible.expect_refused(ErrorCode::unsupported, "kernel size 1 x 1, stride 2 x 2, for an input of unknown size", "y");
}

void recurrent(Net& n, const ir::Shape& state) {
  n.input("x", {4, 2, 3, 1, 1});
  n.input("h", state);
  auto* p = n.layer("r", {"x", "h"}, {"y"})->mutable_simplerecurrent();
  p->set_inputvectorsize(3);
  p->set_outputvectorsize(5);
  for (int i = 0; i < 15; i++) p->mutable_weightmatrix()->add_floatvalue(0);
  for (int i = 0; i < 25; i++) p->mutable_recursionmatrix()->add_floatvalue(0);
  p->mutable_activation()->mutable_leakyrelu();
}

TEST(NnRefusals, RecurrentStateAndActivation) {
  Net state;
  recurrent(state, {1, 2, 1, 5, 1});
  state.expect_refused(ErrorCode::malformed,
                       "layer 'r' (simpleRecurrent): input 'h': expected a state of shape [1, batch, 5, 1, 1], got");
  Net activation;
  recurrent(activation, {1, 2, 5, 1, 1});
  activation.expect_refused(ErrorCode::unsupported, "got member 15 of ActivationParams");
}

}  // namespace

}  // namespace moka::test
