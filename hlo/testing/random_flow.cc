// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/random_writer.h"

namespace collet::hlo::testing::random {

namespace {

std::string shape_of(const std::vector<Value>& values) {
  std::string shapes;
  for (const Value& v : values) shapes += (shapes.empty() ? "" : ", ") + shape(v);
  return "(" + shapes + ")";
}

}  // namespace

std::string Writer::result_tuple(const std::vector<Value>& values, std::string_view name) {
  std::string names;
  for (const Value& v : values) names += (names.empty() ? "" : ", ") + v.name;
  return std::string(name) + " = " + shape_of(values) + " tuple(" + names + ")\n";
}

void Writer::tuples() {
  const auto a = pick(), b = pick();
  const std::string name = state_.name("t");
  text_ += "  " + result_tuple({*a, *b}, name);
  emit(*a->type, a->dims, "get-tuple-element(" + name + "), index=0", a->exact);
  if (state_.one_in(2)) emit(*b->type, b->dims, "get-tuple-element(" + name + "), index=1", b->exact);
}

void Writer::barrier() {
  const auto v = pick();
  emit(*v->type, v->dims, "opt-barrier(" + v->name + ")", v->exact);
}

namespace {

// Begins a computation whose parameter is a tuple like `values`, and adds the tuple's elements to the pool of `in`. Returns the
// tuple's shape.
std::string open(WriterState& draw, Writer& in, const std::vector<Value>& values) {
  const std::string shapes = shape_of(values), parameter = draw.name("p");
  in.text() += "  " + parameter + " = " + shapes + " parameter(0)\n";
  for (size_t i = 0; i < values.size(); ++i)
    in.emit(*values[i].type, values[i].dims, "get-tuple-element(" + parameter + "), index=" + std::to_string(i),
            values[i].exact);
  return shapes;
}

}  // namespace

void Writer::send(const std::vector<Value>& values) {
  if (!sends_ || state_.one_in(2)) return;
  std::string what = values[0].name, shapes = shape(values[0]);
  if (values.size() > 1) {
    what = state_.name("t");
    text_ += "  " + result_tuple(values, what);
    shapes = shape_of(values);
  }
  const std::string token = state_.name("k");
  text_ += "  " + token + " = token[] after-all()\n  " + state_.name("o") + " = token[] outfeed(" + what + ", " +
           token + "), outfeed_shape=" + shapes + "\n";
}

void Writer::loop() {
  std::vector<Value> state = {emit(type("s32"), {}, "constant(" + std::to_string(state_.between(-1, 1)) + ")")};
  for (int64_t n = state_.between(1, 4); n > 0; --n)
    if (const auto v = pick(is_exact)) state.push_back(*v);
  Writer condition(state_, false, sends_), body(state_, false, sends_);
  const std::string shapes = open(state_, condition, state);
  condition.send({condition.pool()[0]});
  const Value limit = condition.emit(type("s32"), {}, "constant(" + std::to_string(state_.between(-1, 7)) + ")");
  condition.text() +=
      "  ROOT go = pred[] compare(" + condition.pool()[0].name + ", " + limit.name + "), direction=LT\n";
  open(state_, body, state);
  std::vector<Value> next(body.pool().begin(), body.pool().end());
  const Value one = body.emit(type("s32"), {}, "constant(1)");
  next[0] = body.emit(type("s32"), {}, "add(" + body.pool()[0].name + ", " + one.name + ")");
  body.grow(6);
  for (size_t i = 1; i < next.size(); ++i)
    if (!state_.one_in(3)) {
      std::vector<Value> fit;
      for (const Value& v : body.pool())
        if (v.exact && v.like(next[i])) fit.push_back(v);
      next[i] = state_.of(fit);
    }
  body.send(next);  // sends the values of the next iteration
  const std::string names[] = {state_.name("condition"), state_.name("body"), state_.name("w")};
  state_.computations += names[0] + " {\n" + condition.text() + "}\n\n" + names[1] + " {\n" + body.text() + "  ROOT " +
                         result_tuple(next, "r") + "}\n\n";
  const std::string init = state_.name("t");
  text_ += "  " + result_tuple(state, init);
  text_ +=
      "  " + names[2] + " = " + shapes + " while(" + init + "), condition=" + names[0] + ", body=" + names[1] + "\n";
  for (size_t i = 0; i < state.size(); ++i)
    if (!state_.one_in(3))
      emit(*state[i].type, state[i].dims, "get-tuple-element(" + names[2] + "), index=" + std::to_string(i));
}

void Writer::conditional() {
  const bool binary = state_.one_in(2);
  const Value which = binary ? mate({"", &type("pred"), {}}) : index();
  const int64_t branches = binary ? 2 : state_.between(1, 3);
  std::vector<Value> results;
  std::string operands, joined, shapes;
  std::vector<std::string> names;
  for (int64_t branch = 0; branch < branches; ++branch) {
    std::vector<Value> in;
    for (int64_t n = state_.between(1, 3); n > 0; --n) in.push_back(*pick());
    Writer writer(state_, false, sends_);
    open(state_, writer, in);
    writer.grow(4);
    if (branch == 0)
      for (int64_t n = state_.between(1, 2); n > 0; --n) results.push_back(*writer.pick());
    std::vector<Value> out;
    for (Value& result : results) {
      std::optional<Value> found;
      for (const Value& v : writer.pool())
        if (v.like(result)) found = v;
      out.push_back(found ? *found : writer.splat(*result.type, result.dims));
      result.exact = result.exact && out.back().exact;
    }
    writer.send(out);
    const std::string name = state_.name("branch"), tuple = state_.name("t");
    state_.computations += name + " {\n" + writer.text() + "  ROOT " + result_tuple(out, "r") + "}\n\n";
    text_ += "  " + result_tuple(in, tuple);
    operands += ", " + tuple;
    names.push_back(name);
    joined += (joined.empty() ? "" : ", ") + name;
  }
  for (const Value& v : results) shapes += (shapes.empty() ? "" : ", ") + shape(v);
  const std::string name = state_.name("c");
  text_ += "  " + name + " = (" + shapes + ") conditional(" + which.name + operands + "), " +
           (binary ? "true_computation=" + names[0] + ", false_computation=" + names[1]
                   : "branch_computations={" + joined + "}") +
           "\n";
  for (size_t i = 0; i < results.size(); ++i)
    emit(*results[i].type, results[i].dims, "get-tuple-element(" + name + "), index=" + std::to_string(i),
         results[i].exact);
}

void Writer::call() {
  std::vector<Value> in;
  std::string operands;
  Writer writer(state_, false);
  for (int64_t n = state_.between(1, 3), i = 0; i < n; ++i) {
    in.push_back(*pick());
    operands += (operands.empty() ? "" : ", ") + in.back().name;
    writer.emit(*in.back().type, in.back().dims, "parameter(" + std::to_string(i) + ")", in.back().exact);
  }
  writer.grow(4);
  // All values become results, since every instruction of a fusion must have a user.
  const std::vector<Value> out = writer.pool();
  std::string shapes;
  for (const Value& v : out) shapes += (shapes.empty() ? "" : ", ") + shape(v);
  const std::string name = state_.name("callee"), result = state_.name("f");
  state_.computations += name + " {\n" + writer.text() + "  ROOT " + result_tuple(out, "r") + "}\n\n";
  text_ += "  " + result + " = (" + shapes + ") " +
           (state_.one_in(2) ? "call(" + operands + "), to_apply=" : "fusion(" + operands + "), kind=kLoop, calls=") +
           name + "\n";
  for (size_t i = 0; i < out.size(); ++i)
    if (state_.one_in(2))
      emit(*out[i].type, out[i].dims, "get-tuple-element(" + result + "), index=" + std::to_string(i), out[i].exact);
}

}  // namespace collet::hlo::testing::random
