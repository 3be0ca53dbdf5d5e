// SPDX-License-Identifier: Apache-2.0
#include "hlo/patterns/declared_pattern.h"

#include <algorithm>
#include <set>

#include "hlo/passes/pattern_graph.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/rewriter.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::hlo::patterns {
namespace {

constexpr size_t kMostForms = 64;
constexpr size_t kMostOpenUnits = 3;
constexpr uint64_t kMostRounds = 64;
constexpr size_t kMostKept = 1024;  // simplified instances; programs have few different ones

Expected<std::unique_ptr<Module>> simplify_text(const std::string& text) {
  COLLET_ASSIGN(std::unique_ptr<Module> module, parse_module(text));
  COLLET_TRY(verify_module(*module));
  PassContext context;
  COLLET_TRY(prepare(*module, context).status());
  return module;
}

bool is_splat(const Literal& value) {
  return value.shape().is_array() &&
         (is_float(value.type()) || is_integer(value.type()) || value.type() == Type::PRED) &&
         value.element_count() > 0;
}

Status in_line(const PatternText& text, const std::string& message) {
  return invalid_argument("line " + std::to_string(text.line()) + ": " + message);
}

}  // namespace

Expected<std::shared_ptr<const DeclaredPattern>> DeclaredPattern::read(std::string_view text) {
  std::shared_ptr<DeclaredPattern> out(new DeclaredPattern);
  out->text_ = text;
  COLLET_ASSIGN(const auto modules, split_modules(text));
  if (modules.size() > kMostForms) return invalid_argument("a pattern has at most 64 forms");
  std::vector<Shape> results;
  for (const auto& [module, line] : modules) {
    COLLET_ASSIGN(PatternText form, PatternText::read(module, line));
    out->forms_.push_back({std::move(form), {}});
    const PatternText& here = out->forms_.back().text;
    if (here.parameters().empty()) return in_line(here, "a pattern has at least one parameter");
    if (here.parameters().size() != out->forms_[0].text.parameters().size())
      return in_line(here, "all forms of a pattern have the same number of parameters");
    COLLET_ASSIGN(out->forms_.back().combinations, combinations(here));
    const Bindings& one = out->forms_.back().combinations.front();
    COLLET_ASSIGN(const Skeleton first, make_skeleton(here, one, any_units(here, one)));
    const size_t ops = first.module->entry_computation().order.size() - here.parameters().size();
    if (ops > kLargestPattern)
      return in_line(here, "the module has " + std::to_string(ops) +
                               " ops once it is simplified; a pattern has at most " + std::to_string(kLargestPattern));
    const size_t count = results_of(*first.module).size();
    if (out->forms_.size() == 1) {
      results.resize(count);
    } else if (count != results.size()) {
      return in_line(here, "all forms of a pattern have the same number of results");
    }
  }
  out->name_ = out->forms_[0].text.name();
  return std::shared_ptr<const DeclaredPattern>(std::move(out));
}

Expected<DeclaredPattern::Skeleton> DeclaredPattern::make_skeleton(const PatternText& text, const Bindings& combination,
                                                                   const Units& units) {
  Skeleton out;
  out.text = &text;
  out.combination = combination;
  Bindings values;
  Status problem;
  // Constants of integer types are whole numbers, which the text alone does not tell.
  for (const bool whole : {false, true}) {
    COLLET_ASSIGN(values, choose(text, combination, units, 0, whole));
    COLLET_ASSIGN(const std::string instance, text.with(values));
    Expected<std::unique_ptr<Module>> module = simplify_text(instance);
    if (module.ok()) {
      out.module = *std::move(module);
      break;
    }
    if (problem.ok()) problem = module.status();
  }
  if (!out.module) return problem;
  const Module& m = *out.module;
  const auto& order = m.entry_computation().order;
  for (const InstrId result : results_of(m)) {
    if (m[result].op == Op::PARAMETER || m[result].op == Op::CONSTANT)
      return in_line(text, "a result is a parameter or constant once the module is simplified");
    if (!m[result].shape.is_array()) return in_line(text, "results are arrays");
  }
  const std::unordered_set<uint32_t> used = used_in(m, m.entry());
  for (const InstrId id : order) {
    const Instruction& instr = m[id];
    if (instr.op == Op::PARAMETER && (!used.contains(index_of(id)) || id == m.entry_computation().root))
      return in_line(text, "parameter '" + std::string(instr.name) + "' is not used once the module is simplified");
    if (has_side_effect(instr.op)) return in_line(text, "'" + std::string(instr.name) + "' has a side effect");
  }
  for (size_t i = 0; i < text.variables().size(); ++i) {
    const auto* wanted = std::get_if<double>(&values[i]);
    if (!wanted) continue;
    const size_t before = out.constants.size();
    for (const InstrId id : order) {
      if (m[id].op != Op::CONSTANT || !is_splat(m.literal(m[id]))) continue;
      const Literal& value = m.literal(m[id]);
      if (value.as_double(0) == Literal::scalar(value.type(), *wanted).as_double(0)) out.constants.emplace_back(id, i);
    }
    if (out.constants.size() == before)
      return in_line(text, "the constant $" + text.variables()[i].name +
                               " is not there once the module is simplified; write the module as it is then, which "
                               "`collet opt --pipeline prepare` shows");
  }
  return out;
}

std::shared_ptr<const DeclaredPattern::Skeleton> DeclaredPattern::skeleton(size_t form, size_t combination,
                                                                           const Units& units) const {
  std::string key = std::to_string(form) + "/" + std::to_string(combination) + "/";
  for (const std::vector<Unit>& one : units)
    for (const Unit unit : one) key += static_cast<char>(unit);
  {
    const std::lock_guard lock(mutex_);
    const auto it = skeletons_.find(key);
    if (it != skeletons_.end()) return it->second;
  }
  std::shared_ptr<const Skeleton> out;
  Expected<Skeleton> made = make_skeleton(forms_[form].text, forms_[form].combinations[combination], units);
  if (made.ok()) out = std::make_shared<const Skeleton>(*std::move(made));
  const std::lock_guard lock(mutex_);
  skeletons_.emplace(std::move(key), out);
  return out;
}

std::shared_ptr<const Module> DeclaredPattern::simplified(const std::string& text) const {
  {
    const std::lock_guard lock(mutex_);
    const auto it = simplified_.find(text);
    if (it != simplified_.end()) return it->second;
  }
  std::shared_ptr<const Module> out;
  if (Expected<std::unique_ptr<Module>> made = simplify_text(text); made.ok()) out = *std::move(made);
  const std::lock_guard lock(mutex_);
  if (simplified_.size() >= kMostKept) simplified_.clear();
  simplified_.emplace(text, out);
  return out;
}

std::optional<Match> DeclaredPattern::match(const Graph& graph, InstrId root, NearestMiss* miss) const {
  for (size_t f = 0; f < forms_.size(); ++f) {
    const PatternText& text = forms_[f].text;
    for (size_t c = 0; c < forms_[f].combinations.size(); ++c) {
      const Bindings& combination = forms_[f].combinations[c];
      Bindings of_root(combination.size());
      if (!PatternText::bind(text.result(), graph.shape(root), of_root)) break;
      // The root's shape says which sizes are 1; for the others, all possibilities are tried.
      Units units = any_units(text, combination);
      std::vector<Unit*> open;
      bool fits = true;
      for (size_t i = 0; i < units.size(); ++i) {
        const auto* list = std::get_if<std::vector<int64_t>>(&of_root[i]);
        const auto* size = std::get_if<int64_t>(&of_root[i]);
        if (list && list->size() != units[i].size()) fits = false;
        for (size_t d = 0; d < units[i].size() && fits; ++d) {
          units[i][d] = (list && (*list)[d] == 1) || (size && *size == 1) ? Unit::One : Unit::More;
          if (!list && !size) open.push_back(&units[i][d]);
        }
      }
      if (!fits) continue;
      const size_t bits = open.size() <= kMostOpenUnits ? open.size() : 0;
      for (size_t ones = 0; ones < size_t{1} << bits; ++ones) {
        for (size_t i = 0; i < bits; ++i) *open[i] = (ones >> i & 1) != 0 ? Unit::One : Unit::More;
        const std::shared_ptr<const Skeleton> one = skeleton(f, c, units);
        if (!one) continue;
        if (auto found = match_skeleton(graph, root, *one, miss)) return found;
      }
    }
  }
  return std::nullopt;
}

std::optional<Match> DeclaredPattern::match_skeleton(const Graph& graph, InstrId root, const Skeleton& skeleton,
                                                     NearestMiss* miss) const {
  const Module& form = *skeleton.module;
  const Instruction& last = form[results_of(form)[0]];
  const Shape& shape = graph.shape(root);
  if (last.op != graph[root].op || !shape.is_array() || shape.rank() != last.shape.rank() ||
      shape.type() != last.shape.type())
    return std::nullopt;
  const PatternText& text = *skeleton.text;
  std::optional<Match> out;
  std::set<std::string> tried;
  const auto refuse = [&](std::string why) {
    if (miss && miss->matched < form.entry_computation().order.size()) {
      miss->matched = form.entry_computation().order.size();
      miss->why = std::move(why);
    }
    return false;
  };
  const auto accept = [&](const std::vector<InstrId>& found) {
    Bindings values = skeleton.combination;
    // Lists get their sizes from the program; the skeleton has said how many there are.
    for (Binding& one : values)
      if (std::holds_alternative<std::vector<int64_t>>(one)) one = Binding();
    const auto& parameters = form.entry_computation().parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const InstrId operand = found[index_of(parameters[i])];
      if (operand == InstrId::None || !PatternText::bind(text.parameters()[i], graph.shape(operand), values))
        return refuse("the shapes of the operands do not fit together");
    }
    for (const auto& [constant, variable] : skeleton.constants) {
      const InstrId id = found[index_of(constant)];
      if (id == InstrId::None) continue;
      const Literal& literal = graph.module().literal(graph[id]);
      if (!is_splat(literal)) return refuse("a constant has different elements");
      const Binding value = literal.as_double(0);
      if (values[variable].index() != 0 && values[variable] != value)
        return refuse("$" + text.variables()[variable].name + " has two values");
      values[variable] = value;
    }
    if (const std::string_view wrong = text.violated(values); !wrong.empty())
      return refuse("'" + std::string(wrong) + "' does not hold at '" + std::string(graph[root].name) + "'");
    const Expected<std::string> instance = text.with(values);
    if (!instance.ok() || !tried.insert(*instance).second) return false;
    const std::shared_ptr<const Module> exact = simplified(*instance);
    if (!exact) return refuse("the text with the values of '" + std::string(graph[root].name) + "' is no program");
    return match_form(
        graph, root, *exact, Agreement::Exact,
        [&](const std::vector<InstrId>& same) {
          Match one{name_, {}, text.attributes(values), {}};
          for (const InstrId p : exact->entry_computation().parameters) one.operands.push_back(same[index_of(p)]);
          for (const InstrId r : results_of(*exact)) one.results.push_back(same[index_of(r)]);
          if (std::count(one.operands.begin(), one.operands.end(), InstrId::None) > 0) return false;
          out = std::move(one);
          return true;
        },
        miss);
  };
  match_form(graph, root, form, Agreement::Ranks, accept, miss);
  return out;
}

Expected<std::vector<DeclaredPattern::Instance>> DeclaredPattern::instances(uint64_t seed, size_t count) const {
  std::vector<Instance> out;
  std::set<std::string> texts;
  std::vector<std::pair<size_t, size_t>> all;
  for (size_t f = 0; f < forms_.size(); ++f)
    for (size_t c = 0; c < forms_[f].combinations.size(); ++c) all.emplace_back(f, c);
  // Each round has other sizes for every combination.
  for (uint64_t round = 0; round < kMostRounds && out.size() < count; ++round) {
    for (const auto& [form, combination] : all) {
      if (out.size() == count) break;
      const PatternText& here = forms_[form].text;
      const Bindings& one = forms_[form].combinations[combination];
      const Units units = any_units(here, one);
      const std::shared_ptr<const Skeleton> skeleton = this->skeleton(form, combination, units);
      if (!skeleton) continue;
      const bool whole = !skeleton->constants.empty() &&
                         !is_float(skeleton->module->literal((*skeleton->module)[skeleton->constants[0].first]).type());
      COLLET_ASSIGN(const Bindings values, choose(here, one, units, seed * kMostRounds + round + 1, whole));
      COLLET_ASSIGN(std::string text, here.with(values));
      if (!simplified(text) || !texts.insert(text).second) continue;
      Instance instance{std::move(text), ""};
      for (size_t i = 0; i < values.size(); ++i) {
        std::string shown;
        if (const auto* type = std::get_if<Type>(&values[i])) shown = type_info(*type).text;
        if (const auto* size = std::get_if<int64_t>(&values[i])) shown = std::to_string(*size);
        if (const auto* constant = std::get_if<double>(&values[i])) shown = number(*constant);
        if (const auto* list = std::get_if<std::vector<int64_t>>(&values[i]))
          for (const int64_t n : *list) shown += (shown.empty() ? "" : "x") + std::to_string(n);
        instance.values += (instance.values.empty() ? "" : " ") + here.variables()[i].name + "=" + shown;
      }
      out.push_back(std::move(instance));
    }
  }
  return out;
}

}  // namespace collet::hlo::patterns
