// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

constexpr int kManyBlobs = 1 << 16;
constexpr int64_t kInt32 = (int64_t{1} << 31) - 1;

Result<Value*> concatenate(Layer& l, std::vector<Value*> values, int axis, bool interleave = false) {
  if (values.size() == 1) return values[0];
  std::vector<NamedArg> args{{"values", std::move(values)}, {"axis", axis}};
  if (interleave) args.emplace_back("interleave", true);
  return l.op("concat", std::move(args));
}

Status concat(Layer& l) {
  MOKA_TRY(l.arity(1, kManyBlobs));
  std::vector<Value*> values;
  if (l.p.concat().sequenceconcat()) {
    for (int i = 0; i < l.inputs(); i++) {
      values.push_back(MOKA_TRY(l.in(i)));
      if (values.back()->type.rank() < 5)
        return l.malformed(cat("expected inputs of rank 5, got ", values.back()->type));
    }
    return l.set(0, MOKA_TRY(concatenate(l, values, values[0]->type.rank() - 5)));
  }
  Form form = MOKA_TRY(l.common_form());
  if (form == Form::exact && MOKA_TRY(l.blob(0))->rank() < 3) return l.malformed("expected inputs of rank 3 or more");
  for (int i = 0; i < l.inputs(); i++) values.push_back(MOKA_TRY(l.in(i, form)));
  int axis = form == Form::exact ? values[0]->type.rank() - 3 : 1;
  return l.set(0, MOKA_TRY(concatenate(l, values, axis)), form);
}

/// Gives all inputs the rank of the first, if it is known, by adding or removing leading dimensions of 1.
Result<Value*> with_rank(Layer& l, int i, const Value* first) {
  Value* v = MOKA_TRY(l.any(i));
  if (!v->type.is_ranked() || !first->type.is_ranked()) return v;
  const int rank = first->type.rank();
  const int extra = v->type.rank() - rank;
  Ints axes;
  for (int a = 0; a < std::abs(extra); a++) axes.push_back(a);
  if (extra == 0) return v;
  if (extra < 0) return l.op("expand_dims", {{"x", v}, {"axes", axes}});
  for (int64_t a : axes)
    if (int64_t size = v->type.shape()[static_cast<int>(a)]; size >= 0 && size != 1)
      return l.malformed(cat("input '", l.p.input(i), "': expected rank ", rank, ", as input '", l.p.input(0),
                             "' has, got ", v->type));
  return l.net.squeeze(v, axes, l.p.name());
}

Status concat_nd(Layer& l) {
  MOKA_TRY(l.arity(1, kManyBlobs));
  std::vector<Value*> values{MOKA_TRY(l.any(0))};
  for (int i = 1; i < l.inputs(); i++) values.push_back(MOKA_TRY(with_rank(l, i, values[0])));
  int axis = MOKA_TRY(l.axis(l.p.concatnd().axis(), values[0]));
  return l.set(0, MOKA_TRY(concatenate(l, values, axis, l.p.concatnd().interleave())));
}

Status stack(Layer& l) {
  MOKA_TRY(l.arity(1, kManyBlobs));
  std::vector<Value*> values;
  for (int i = 0; i < l.inputs(); i++) values.push_back(MOKA_TRY(l.any(i)));
  const ir::Type& t = values[0]->type;
  int axis = t.is_ranked() ? MOKA_TRY(ir::normalize_axis(l.p.stack().axis(), t.rank() + 1))
                           : MOKA_TRY(l.axis(l.p.stack().axis(), values[0]));
  return l.set(0, MOKA_TRY(l.op("stack", {{"values", values}, {"axis", axis}})));
}

Status split_into(Layer& l, Value* x, int axis, Form form, std::vector<NamedArg> how) {
  how.emplace_back("x", x);
  how.emplace_back("axis", axis);
  ir::Op* parts = MOKA_TRY(l.multi("split", std::move(how)));
  if (static_cast<int>(parts->output_count()) != l.outputs())
    return l.malformed(cat("expected ", parts->output_count(), " outputs, got ", l.outputs()));
  for (int i = 0; i < l.outputs(); i++) MOKA_TRY(l.set(i, parts->output(static_cast<size_t>(i)), form));
  return {};
}

Status split(Layer& l) {
  MOKA_TRY(l.arity(1, 1, 1, kManyBlobs));
  uint64_t n = l.p.split().noutputs();
  if (n != static_cast<uint64_t>(l.outputs())) return l.malformed(cat("expected ", n, " outputs, got ", l.outputs()));
  Form form = MOKA_TRY(l.cheap_form(0));
  if (form == Form::exact) form = Form::nchw;
  return split_into(l, MOKA_TRY(l.in(0, form)), 1, form, {{"num_splits", l.outputs()}});
}

Status split_nd(Layer& l) {
  MOKA_TRY(l.arity(1, 1, 1, kManyBlobs));
  const auto& p = l.p.splitnd();
  Value* x = MOKA_TRY(l.any(0));
  int axis = MOKA_TRY(l.axis(p.axis(), x));
  std::vector<int64_t> sizes;
  if (p.splitsizes_size() == 0) {
    const int64_t size = x->type.is_ranked() ? x->type.shape()[axis] : ir::kAnyDim, n = l.outputs();
    if (size < 0 || size % n == 0) return split_into(l, x, axis, Form::exact, {{"num_splits", l.outputs()}});
    // Each of the first parts gets one element of the remainder.
    for (int64_t i = 0; i < n; i++) sizes.push_back(size / n + (i < size % n ? 1 : 0));
    return split_into(l, x, axis, Form::exact, {{"split_sizes", Tensor::i32(sizes)}});
  }
  for (uint64_t s : p.splitsizes()) {
    if (s > static_cast<uint64_t>(kInt32)) return l.malformed(cat("a split size of ", s));
    sizes.push_back(static_cast<int64_t>(s));
  }
  return split_into(l, x, axis, Form::exact, {{"split_sizes", Tensor::i32(sizes)}});
}

Status sequence_repeat(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  uint64_t n = std::max<uint64_t>(l.p.sequencerepeat().nrepetitions(), 1);
  Value* x = MOKA_TRY(l.in(0));
  int rank = x->type.rank();
  if (rank < 5) return l.malformed(cat("expected an input of rank 5, got ", x->type));
  if (n > static_cast<uint64_t>(kInt32)) return l.malformed(cat(n, " repetitions"));
  Ints reps;
  for (int i = 0; i < rank; i++) reps.push_back(i == rank - 5 ? static_cast<int64_t>(n) : 1);
  return l.set(0, MOKA_TRY(l.op("tile", {{"x", x}, {"reps", reps}})));
}

Status tile(Layer& l) {
  MOKA_TRY(l.arity(1, 2));
  Value* x = MOKA_TRY(l.in(0));
  int rank = x->type.rank();
  if (l.inputs() == 2) {
    Value* reps = MOKA_TRY(l.int32_vector(1));
    if (reps->type.rank() != 1 || reps->type.shape()[0] < 0 || reps->type.shape()[0] > rank)
      return l.malformed(cat("expected at most ", rank, " repetitions, got ", reps->type));
    int missing = rank - static_cast<int>(reps->type.shape()[0]);
    if (missing > 0) {
      Value* ones = MOKA_TRY(l.constant(Tensor::i32(std::vector<int64_t>(static_cast<size_t>(missing), 1)), "ones"));
      reps = MOKA_TRY(l.op("concat", {{"values", std::vector<Value*>{ones, reps}}, {"axis", 0}}));
    }
    return l.set(0, MOKA_TRY(l.op("tile", {{"x", x}, {"reps", reps}})));
  }
  const auto& given = l.p.tile().reps();
  if (given.size() > rank) return l.malformed(cat("expected at most ", rank, " repetitions, got ", given.size()));
  Ints reps;
  for (int i = given.size(); i < rank; i++) reps.push_back(1);
  for (uint64_t r : given) {
    if (r == 0 || r > static_cast<uint64_t>(kInt32)) return l.malformed(cat(r, " repetitions"));
    reps.push_back(static_cast<int64_t>(r));
  }
  return l.set(0, MOKA_TRY(l.op("tile", {{"x", x}, {"reps", reps}})));
}

Status slice(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.slice();
  Blob* b = MOKA_TRY(l.blob(0));
  int back = p.axis() == proto::SliceLayerParams::CHANNEL_AXIS  ? 3
             : p.axis() == proto::SliceLayerParams::HEIGHT_AXIS ? 2
                                                                : 1;
  Form form = b->rank() >= 3 ? Form::nchw : Form::exact;
  Value* x = MOKA_TRY(l.in(0, form));
  int rank = x->type.rank();
  if (back > rank) return l.malformed(cat("expected an input of rank ", back, " or more, got ", x->type));
  auto fits = [](int64_t v) { return v >= -kInt32 && v <= kInt32; };
  if (!fits(p.startindex()) || !fits(p.endindex()))
    return l.malformed(cat("a range of ", p.startindex(), " to ", p.endindex()));
  uint64_t stride = std::max<uint64_t>(p.stride(), 1);
  if (stride > static_cast<uint64_t>(kInt32)) return l.malformed(cat("a stride of ", stride));
  Ints begin, end, steps;
  Tensor whole = MOKA_TRY(Tensor::zeros(DType::boolean, Shape{rank}));
  for (int i = 0; i < rank; i++) {
    bool here = i == rank - back;
    begin.push_back(here ? p.startindex() : 0);
    end.push_back(here ? p.endindex() : 0);
    steps.push_back(here ? static_cast<int64_t>(stride) : 1);
    whole.mut<uint8_t>()[static_cast<size_t>(i)] = !here;
  }
  return l.set(
      0,
      MOKA_TRY(l.op(
          "slice_by_index",
          {{"x", x}, {"begin", begin}, {"end", end}, {"stride", steps}, {"begin_mask", whole}, {"end_mask", whole}})),
      form);
}

template <class T>
Result<Tensor> flags(Layer& l, const T& f, int rank, std::string_view what) {
  Tensor t = MOKA_TRY(Tensor::zeros(DType::boolean, Shape{rank}));
  if (f.size() == 0) return t;
  if (static_cast<int>(f.size()) < rank) return l.malformed(cat(what, ": expected ", rank, " entries, got ", f.size()));
  for (int i = 0; i < rank; i++) t.mut<uint8_t>()[static_cast<size_t>(i)] = f[i] ? 1 : 0;
  return t;
}

template <class T>
Result<Ints> entries(Layer& l, const T& f, int rank, std::string_view what, int64_t if_absent) {
  Ints out;
  if (f.size() != 0 && static_cast<int>(f.size()) < rank)
    return l.malformed(cat(what, ": expected ", rank, " entries, got ", f.size()));
  for (int i = 0; i < rank; i++) {
    int64_t v = f.size() == 0 ? if_absent : static_cast<int64_t>(f[i]);
    if (v < -kInt32 - 1 || v > kInt32) v = v < 0 ? -kInt32 - 1 : kInt32;
    out.push_back(v);
  }
  return out;
}

/// Appends the masks. Where the axis is squeezed, only the element at its begin is taken, whatever the other masks say.
void add_masks(std::vector<NamedArg>& args, Tensor begin, Tensor end, Tensor squeeze) {
  for (int64_t i = 0; i < squeeze.count(); i++)
    if (const auto k = static_cast<size_t>(i); squeeze.as<uint8_t>()[k] != 0) begin.mut<uint8_t>()[k] = 0;
  args.emplace_back("begin_mask", std::move(begin));
  args.emplace_back("end_mask", std::move(end));
  args.emplace_back("squeeze_mask", std::move(squeeze));
}

Status slice_static(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.slicestatic();
  if (p.beginids_size() > ir::kMaxRank) return l.unsupported(cat("beginIds: ", p.beginids_size(), " entries"));
  Value* x = MOKA_TRY(l.with_rank(0, p.beginids_size()));
  int rank = x->type.rank();
  std::vector<NamedArg> args{{"x", x}};
  args.emplace_back("begin", MOKA_TRY(entries(l, p.beginids(), rank, "beginIds", 0)));
  args.emplace_back("end", MOKA_TRY(entries(l, p.endids(), rank, "endIds", 0)));
  args.emplace_back("stride", MOKA_TRY(entries(l, p.strides(), rank, "strides", 1)));
  Tensor from_start = MOKA_TRY(flags(l, p.beginmasks(), rank, "beginMasks"));
  Tensor to_end = MOKA_TRY(flags(l, p.endmasks(), rank, "endMasks"));
  add_masks(args, std::move(from_start), std::move(to_end), MOKA_TRY(flags(l, p.squeezemasks(), rank, "squeezeMasks")));
  return l.set(0, MOKA_TRY(l.op("slice_by_index", std::move(args))));
}

/// The numbers of an input that is a constant of the model.
Result<std::vector<int64_t>> fixed(Layer& l, int i, std::string_view what) {
  Value* v = MOKA_TRY(l.in(i));
  if (v->constant() == nullptr || !v->type.is_tensor())
    return l.unsupported(cat(what, " that are computed ('", l.p.input(i), "'); a constant is supported"));
  ir::TensorView t = v->constant()->tensor.view();
  std::vector<int64_t> out;
  for (int64_t k = 0; k < t.count(); k++) out.push_back(ir::load_i64(t, k));
  return out;
}

/// Inputs: data, begin, end, strides, begin masks, end masks, squeeze masks. The layer supplies the values of absent
/// inputs.
Status slice_dynamic(Layer& l) {
  MOKA_TRY(l.arity(2, 7));
  const auto& p = l.p.slicedynamic();
  Value* begin = MOKA_TRY(l.int32_vector(1));
  const int64_t n = begin->type.is_ranked() && begin->type.rank() == 1 ? begin->type.shape()[0] : ir::kAnyDim;
  Value* x = MOKA_TRY(n < 0 || n > ir::kMaxRank ? l.in(0) : l.with_rank(0, static_cast<int>(n)));
  int rank = x->type.rank();
  std::vector<NamedArg> args{{"x", x}, {"begin", begin}};
  if (l.inputs() > 2)
    args.emplace_back("end", MOKA_TRY(l.int32_vector(2)));
  else
    args.emplace_back("end", MOKA_TRY(entries(l, p.endids(), rank, "endIds", 1)));
  if (l.inputs() > 3)
    args.emplace_back("stride", MOKA_TRY(entries(l, MOKA_TRY(fixed(l, 3, "strides")), rank, "strides", 1)));
  else
    args.emplace_back("stride", MOKA_TRY(entries(l, p.strides(), rank, "strides", 1)));
  auto mask = [&](int input, const auto& of_layer, const char* name) -> Result<Tensor> {
    if (l.inputs() > input) return flags(l, MOKA_TRY(fixed(l, input, "masks")), rank, name);
    return flags(l, of_layer, rank, name);
  };
  Tensor from_start = MOKA_TRY(mask(4, p.beginmasks(), "begin_mask"));
  Tensor to_end = MOKA_TRY(mask(5, p.endmasks(), "end_mask"));
  add_masks(args, std::move(from_start), std::move(to_end), MOKA_TRY(mask(6, p.squeezemasks(), "squeeze_mask")));
  return l.set(0, MOKA_TRY(l.op("slice_by_index", std::move(args))));
}

Status slice_by_size(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  const auto& p = l.p.slicebysize();
  Value* x = MOKA_TRY(l.in(0));
  int rank = x->type.rank();
  int axis = MOKA_TRY(l.axis(p.axis(), x));
  if (p.size() < 1 || p.size() > kInt32) return l.malformed(cat("a size of ", p.size()));
  Value* at = MOKA_TRY(l.int32_vector(1));
  std::vector<Value*> begin;
  auto zeros = [&](int n) { return l.constant(Tensor::i32(std::vector<int64_t>(static_cast<size_t>(n), 0)), "zeros"); };
  if (axis > 0) begin.push_back(MOKA_TRY(zeros(axis)));
  begin.push_back(at);
  if (axis + 1 < rank) begin.push_back(MOKA_TRY(zeros(rank - axis - 1)));
  Value* start = begin.size() == 1 ? at : MOKA_TRY(l.op("concat", {{"values", begin}, {"axis", 0}}));
  Ints size;
  for (int i = 0; i < rank; i++) size.push_back(i == axis ? p.size() : -1);
  return l.set(0, MOKA_TRY(l.op("slice_by_size", {{"x", x}, {"begin", start}, {"size", size}})));
}

Status reverse(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& dims = l.p.reverse().reversedim();
  if (dims.size() > ir::kMaxRank) return l.unsupported(cat("flags: ", dims.size(), " entries"));
  Value* x = MOKA_TRY(l.with_rank(0, dims.size()));
  int rank = x->type.rank();
  if (dims.size() != rank) return l.malformed(cat("expected ", rank, " flags, got ", dims.size()));
  Ints axes;
  for (int i = 0; i < rank; i++)
    if (dims[i]) axes.push_back(i);
  if (axes.empty()) return l.set(0, x);
  return l.set(0, MOKA_TRY(l.op("reverse", {{"x", x}, {"axes", axes}})));
}

Status reverse_seq(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  const auto& p = l.p.reverseseq();
  Value* x = MOKA_TRY(l.any(0));
  int batch = MOKA_TRY(l.axis(p.batchaxis(), x));
  int sequence = MOKA_TRY(l.axis(p.sequenceaxis(), x));
  Value* lengths = MOKA_TRY(l.int32(1));
  return l.set(0, MOKA_TRY(l.op("reverse_sequence",
                                {{"x", x}, {"lengths", lengths}, {"seq_axis", sequence}, {"batch_axis", batch}})));
}

Status sliding_windows(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.slidingwindows();
  Value* x = MOKA_TRY(l.any(0));
  uint64_t step = std::max<uint64_t>(p.step(), 1);
  if (p.windowsize() == 0 || p.windowsize() > static_cast<uint64_t>(kInt32) || step > static_cast<uint64_t>(kInt32))
    return l.malformed(cat("windows of ", p.windowsize(), " with step ", step));
  int axis = MOKA_TRY(l.axis(p.axis(), x));
  return l.set(
      0,
      MOKA_TRY(l.op(
          "sliding_windows",
          {{"x", x}, {"axis", axis}, {"size", static_cast<int>(p.windowsize())}, {"stride", static_cast<int>(step)}})));
}

}  // namespace

std::span<const LayerImport> layers_joining() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kConcat, "concat", concat},
      {L::kConcatND, "concatND", concat_nd},
      {L::kStack, "stack", stack},
      {L::kSplit, "split", split},
      {L::kSplitND, "splitND", split_nd},
      {L::kSequenceRepeat, "sequenceRepeat", sequence_repeat},
      {L::kTile, "tile", tile},
      {L::kSlice, "slice", slice},
      {L::kSliceStatic, "sliceStatic", slice_static},
      {L::kSliceDynamic, "sliceDynamic", slice_dynamic},
      {L::kSliceBySize, "sliceBySize", slice_by_size},
      {L::kReverse, "reverse", reverse},
      {L::kReverseSeq, "reverseSeq", reverse_seq},
      {L::kSlidingWindows, "slidingWindows", sliding_windows},
  };
  return list;
}

}  // namespace moka::import::nn
