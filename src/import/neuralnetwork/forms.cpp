// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

bool is_one(const Dim& d) { return d.size == 1; }

Tensor flags(std::initializer_list<bool> values) {
  Tensor t = Tensor::zeros(DType::boolean, Shape{static_cast<int64_t>(values.size())}).value();
  std::copy(values.begin(), values.end(), t.mut<uint8_t>().begin());
  return t;
}

/// One dimension of size `lead[0] * ...`; an int32 value when the product is unknown at import.
Dim folded(std::span<const Dim> lead) {
  if (lead.empty()) return Dim{1};
  const Dim* only = nullptr;
  for (const Dim& d : lead) {
    if (is_one(d)) continue;
    if (only != nullptr) return Dim{product(lead)};
    only = &d;
  }
  return only == nullptr ? Dim{1} : *only;
}

}  // namespace

Result<Value*> Network::as(Blob& blob, Form form) {
  if (Value* v = blob.form(form)) return v;
  if (!blob.is_ranked()) return fold(blob, form);
  const std::string name = "view";
  int rank = blob.rank();
  if (form != Form::exact && rank < 3)
    return fail(ErrorCode::unsupported, "expected an input of rank 3 or more, got rank ", rank);
  std::vector<Dim> lead = blob.lead();
  auto position_of_fold = [&]() -> int {
    // set when all other leading dimensions are 1; -1 otherwise
    int at = -1;
    for (size_t i = 0; i < lead.size(); i++) {
      if (is_one(lead[i])) continue;
      if (at >= 0) return -1;
      at = static_cast<int>(i);
    }
    return at >= 0 ? at : static_cast<int>(lead.size()) - 1;
  };
  Value*& to = blob.form(form);

  if (form == Form::exact) {
    Form have = blob.form(Form::nchw) != nullptr ? Form::nchw : Form::matrix;
    Value* v = blob.form(have);
    Ints axes;
    if (rank >= 4) {
      int keep = position_of_fold();
      if (keep < 0) return to = MOKA_TRY(reshape(v, blob.dims, name));
      for (int i = 0; i < rank - 3; i++)
        if (i != keep) axes.push_back(i);
    }
    if (have == Form::matrix) {
      axes.push_back(rank - 2);
      axes.push_back(rank - 1);
    }
    if (rank == 3) {
      v = MOKA_TRY(op("squeeze", {{"x", v}, {"axes", Ints{0}}}, name));
      if (have == Form::matrix) {
        axes = Ints{1, 2};
      }
    }
    if (!axes.empty()) v = MOKA_TRY(op("expand_dims", {{"x", v}, {"axes", axes}}, name));
    return to = v;
  }

  if (form == Form::nchw) {
    if (Value* m = blob.form(Form::matrix))
      return to = MOKA_TRY(op("expand_dims", {{"x", m}, {"axes", Ints{2, 3}}}, name));
    Value* v = blob.form(Form::exact);
    if (rank == 4) return to = v;
    if (rank == 3) return to = MOKA_TRY(op("expand_dims", {{"x", v}, {"axes", Ints{0}}}, name));
    int keep = position_of_fold();
    if (keep >= 0) {
      Ints axes;
      for (int i = 0; i < rank - 3; i++)
        if (i != keep) axes.push_back(i);
      return to = MOKA_TRY(op("squeeze", {{"x", v}, {"axes", axes}}, name));
    }
    std::vector<Dim> dims{folded(lead)};
    dims.insert(dims.end(), blob.dims.end() - 3, blob.dims.end());
    if (!dims[0].known() && !all_known(std::span(dims).subspan(1))) {
      Value* tail = MOKA_TRY(shape_value(std::span(dims).subspan(1), name));
      Value* any = MOKA_TRY(constant(Tensor::i32({-1}), "fold"));
      Value* shape = MOKA_TRY(op("concat", {{"values", std::vector<Value*>{any, tail}}, {"axis", 0}}, name));
      return to = MOKA_TRY(op("reshape", {{"x", v}, {"shape", shape}}, name));
    }
    dims[0].from = nullptr;
    return to = MOKA_TRY(reshape(v, dims, name));
  }

  Value* v = MOKA_TRY(as(blob, Form::nchw));
  if (!is_one(blob.dims[static_cast<size_t>(rank) - 1]) || !is_one(blob.dims[static_cast<size_t>(rank) - 2]))
    return fail(ErrorCode::unsupported, "expected an input whose height and width are 1, got ", v->type);
  return to = MOKA_TRY(op("squeeze", {{"x", v}, {"axes", Ints{2, 3}}}, name));
}

Result<Value*> Network::fold(Blob& blob, Form form) {
  const std::string name = "view";
  if (form == Form::matrix) {
    Value* v = MOKA_TRY(as(blob, Form::nchw));
    return blob.form(form) = MOKA_TRY(squeeze(v, Ints{2, 3}, name));
  }
  Value* x = blob.form(Form::exact);
  Value* shape = MOKA_TRY(op("shape", {{"x", x}}, name));
  Value* tail = MOKA_TRY(
      op("slice_by_index", {{"x", shape}, {"begin", Ints{-3}}, {"end", Ints{0}}, {"end_mask", flags({true})}}, name));
  Value* any = MOKA_TRY(constant(Tensor::i32({-1}), "fold"));
  shape = MOKA_TRY(op("concat", {{"values", std::vector<Value*>{any, tail}}, {"axis", 0}}, name));
  const ir::Type declared = unknown_sizes(x->type.dtype(), 4);
  return blob.form(form) = MOKA_TRY(op("reshape", {{"x", x}, {"shape", shape}}, name, &declared));
}

Result<Value*> Network::unfold(Value* v, Form form, const Blob& like, std::string_view name) {
  if (form == Form::exact) return v;
  if (form == Form::matrix) v = MOKA_TRY(op("expand_dims", {{"x", v}, {"axes", Ints{2, 3}}}, name));
  Value* of_like = MOKA_TRY(op("shape", {{"x", like.form(Form::exact)}}, name));
  Value* lead = MOKA_TRY(op("slice_by_index", {{"x", of_like}, {"begin", Ints{0}}, {"end", Ints{-3}}}, name));
  Value* tail = MOKA_TRY(shape_value(std::span<const Dim>(dims_of(v)).last(3), name));
  Value* shape = MOKA_TRY(op("concat", {{"values", std::vector<Value*>{lead, tail}}, {"axis", 0}}, name));
  return op("reshape", {{"x", v}, {"shape", shape}}, name);
}

}  // namespace moka::import::nn
