// SPDX-License-Identifier: Apache-2.0
#include "hlo/text/printer.h"

#include <algorithm>

#include "hlo/text/lexer.h"
#include "hlo/text/name_table.h"
#include "hlo/text/printer_impl.h"
#include "hlo/text/writer.h"

namespace collet::hlo {
namespace text {
namespace {

constexpr size_t kIndexEvery = 5;
constexpr int kStep = 2;

void write_index(std::string& out, size_t i) {
  if (i == 0 || i % kIndexEvery) return;
  out += "/*index=";
  write(out, static_cast<int64_t>(i));
  out += "*/";
}

void write_layout(std::string& out, const Layout& layout) {
  const bool plain = layout.dim_level_types.empty() && layout.tiles.empty() && layout.tail_padding_alignment == 1 &&
                     layout.index_type == Type::Invalid && layout.pointer_type == Type::Invalid &&
                     !layout.element_size_bits && !layout.memory_space && layout.splits.empty() &&
                     !layout.physical_shape && !layout.metadata_prefix_bytes;
  if (plain)
    write_braces(out, layout.minor_to_major);
  else
    out += layout_to_string(layout);
}

// Replaces characters that HLO text does not allow in names; it allows letters, digits, '_', '.' and '-'.
std::string readable(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (!is_name_char(c)) c = '_';
  if (out.empty() || !begins_name(out[0])) out.insert(0, "_");
  return out;
}

std::string allowed(std::string_view text) {
  std::string out = readable(text);
  if (out.starts_with("__")) out[0] = 'a';
  if (is_reserved_name(out)) out += '_';
  return out;
}

bool is_readable(std::string_view text) {
  if (text.empty() || !begins_name(text[0])) return false;
  return std::all_of(text.begin(), text.end(), is_name_char);
}

// True for types and keywords, which are names only after '%'.
bool needs_percent(std::string_view text) {
  Token token;
  Lexer(text).next(token);
  return token.kind != Tok::Ident || token.text.size() != text.size();
}

}  // namespace

void write_shape(std::string& out, const Shape& shape, bool layouts) {
  if (shape.is_tuple()) {
    out += '(';
    for (size_t i = 0; i < shape.elements().size(); ++i) {
      if (i) out += ", ";
      write_index(out, i);
      write_shape(out, shape.element(i), layouts);
    }
    out += ')';
    return;
  }
  if (shape.is_buffer()) {
    out += "b(";
    write_shape(out, shape.element(0), layouts);
    out += ')';
    return;
  }
  out += type_info(shape.type()).text;
  out += '[';
  for (int i = 0; i < shape.rank(); ++i) {
    if (i) out += ',';
    if (shape.dim(i) == kUnbounded) {
      out += '?';
      continue;
    }
    if (shape.is_dynamic(i)) out += "<=";
    write(out, shape.dim(i));
  }
  out += ']';
  const Layout* layout = layouts ? shape.layout() : nullptr;
  if (layout && (shape.rank() > 0 || !layout->is_default())) write_layout(out, *layout);
}

void write_string(std::string& out, std::string_view text) {
  out += '"';
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    const char* start = p;
    while (p < end && *p != '"' && *p != '\\' && *p != '\'' && *p >= 0x20 && *p < 0x7F) ++p;
    out.append(start, static_cast<size_t>(p - start));
    if (p == end) break;
    const char c = *p++;
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '"':
      case '\\':
      case '\'':
        out += '\\';
        out += c;
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        out += '\\';
        out += static_cast<char>('0' + (byte >> 6));
        out += static_cast<char>('0' + (byte >> 3 & 7));
        out += static_cast<char>('0' + (byte & 7));
      }
    }
  }
  out += '"';
}

// ---- names ----

void Printer::find_double_names() {
  NameTable seen;
  std::unordered_map<std::string, int> next;  // by stem: the next number
  const auto fresh = [&](std::string_view stem, std::string& made) -> bool {
    if (is_readable(stem) && seen.find(stem) == NameTable::kNone) return true;
    const std::string base = readable(stem);
    made = base;
    int& n = next[base];
    while (seen.find(made) != NameTable::kNone) made = base + "." + std::to_string(++n);
    return false;
  };
  for (CompId c : module_.computations()) {
    std::string made;
    const std::string_view text = module_[c].name;
    if (fresh(text, made)) {
      seen.insert(text, 0);
    } else {
      const auto& kept = computation_names_[index_of(c)] = std::move(made);
      seen.insert(kept, 0);
    }
  }
  if (canonical()) {
    number_.resize(module_.instruction_limit());
    for (CompId c : module_.computations()) {
      uint32_t n = 0;
      for (InstrId id : module_[c].order) number_[index_of(id)] = n++;
    }
    return;
  }
  for (CompId c : module_.computations()) {
    seen.clear();
    next.clear();
    std::vector<InstrId> again;
    for (InstrId id : module_[c].order) {
      const std::string_view text = module_[id].name;
      if (!is_readable(text) || is_reserved_name(text) || !seen.insert(text, 0)) again.push_back(id);
    }
    for (InstrId id : again) {
      std::string made;
      const std::string stem = allowed(module_[id].name);
      if (fresh(stem, made)) made = stem;
      const auto& kept = instruction_names_[index_of(id)] = std::move(made);
      seen.insert(kept, 0);
    }
  }
}

void Printer::name(std::string_view text) {
  if (options_.style == PrintStyle::Long || needs_percent(text)) out_ += '%';
  out_ += text;
}

void Printer::instruction_name(InstrId id) {
  if (canonical()) {
    out_ += "tmp_";
    write(out_, index_of(id) < number_.size() ? number_[index_of(id)] : index_of(id));
    return;
  }
  if (!instruction_names_.empty())
    if (const auto it = instruction_names_.find(index_of(id)); it != instruction_names_.end()) return name(it->second);
  name(module_[id].name);
}

void Printer::computation_name(CompId id) {
  if (!computation_names_.empty())
    if (const auto it = computation_names_.find(index_of(id)); it != computation_names_.end()) return name(it->second);
  name(module_[id].name);
}

// ---- the module ----

void Printer::module_text() {
  find_double_names();
  if (options_.style == PrintStyle::Fingerprint) return fingerprint();
  header();
  out_ += "\n\n";
  if (options_.style == PrintStyle::Long && options_.metadata && !module_.header().verbatim.empty()) {
    out_ += module_.header().verbatim;
    out_ += "\n\n";
  }
  if (canonical()) {
    if (module_.entry() != CompId::None) computation(module_.entry());
    return;
  }
  for (CompId id : module_.computations()) {
    computation(id);
    out_ += '\n';
  }
}

// Prints the computations sorted by their text, so that names and order do not matter.
void Printer::fingerprint() {
  header();
  out_ += "\n\n";
  std::vector<std::string> texts;
  std::string entry;
  for (CompId id : module_.computations()) {
    std::string text;
    text.swap(out_);
    body(id, kStep);
    text.swap(out_);
    if (id == module_.entry())
      entry = std::move(text);
    else
      texts.push_back(std::move(text));
  }
  std::sort(texts.begin(), texts.end());
  for (const std::string& text : texts) out_ += text + "\n";
  out_ += "ENTRY " + entry + "\n";
}

void Printer::header() {
  const ModuleHeader& h = module_.header();
  out_ += "HloModule ";
  const std::string name = options_.style == PrintStyle::Fingerprint ? "m" : readable(module_.name());
  if (needs_percent(name)) out_ += '%';
  out_ += name;
  if (h.is_scheduled) out_ += ", is_scheduled=true";
  aliases();
  if (h.alias_passthrough_params) out_ += ", alias_passthrough_params=true";
  entry_layout();
  spmd(", allow_spmd_sharding_propagation_to_parameters=", h.spmd_to_parameters);
  spmd(", allow_spmd_sharding_propagation_to_output=", h.spmd_to_output);
  if (h.replica_count != 1) {
    out_ += ", replica_count=";
    write(out_, h.replica_count);
  }
  if (h.num_partitions != 1) {
    out_ += ", num_partitions=";
    write(out_, h.num_partitions);
  }
  if (options_.style != PrintStyle::Long) return;
  frontend(h.frontend_attributes);
  if (!h.origin_recovery_table.empty() && options_.metadata) {
    out_ += ", origin_recovery_table={";
    out_ += h.origin_recovery_table;
    out_ += '}';
  }
}

void Printer::aliases() {
  const ModuleHeader& h = module_.header();
  const auto target = [&](int64_t parameter, const Dims& index) {
    out_ += '(';
    write(out_, parameter);
    out_ += ", ";
    write_braces(out_, index);
  };
  if (!h.aliases.empty()) {
    out_ += ", input_output_alias={ ";
    for (size_t i = 0; i < h.aliases.size(); ++i) {
      if (i) out_ += ", ";
      write_braces(out_, h.aliases[i].output_index);
      out_ += ": ";
      target(h.aliases[i].parameter, h.aliases[i].parameter_index);
      out_ += h.aliases[i].must ? ", must-alias)" : ", may-alias)";
    }
    out_ += " }";
  }
  if (!h.donors.empty()) {
    out_ += ", buffer_donor={ ";
    for (size_t i = 0; i < h.donors.size(); ++i) {
      if (i) out_ += ", ";
      target(h.donors[i].parameter, h.donors[i].parameter_index);
      out_ += ')';
    }
    out_ += " }";
  }
}

void Printer::entry_layout() {
  const ModuleHeader& h = module_.header();
  if (!h.has_entry_layout || !options_.layouts) return;
  out_ += ", entry_computation_layout={(";
  for (size_t i = 0; i < h.entry_parameters.size(); ++i) {
    if (i) out_ += ", ";
    write_index(out_, i);
    write_shape(out_, h.entry_parameters[i], true);
  }
  out_ += ")->";
  write_shape(out_, h.entry_result, true);
  out_ += '}';
}

void Printer::spmd(std::string_view text, const std::vector<bool>& list) {
  if (list.empty()) return;
  out_ += text;
  out_ += '{';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out_ += ',';
    out_ += list[i] ? "true" : "false";
  }
  out_ += '}';
}

// ---- computations ----

void Printer::computation(CompId id) {
  const Computation& c = module_[id];
  if (id == module_.entry()) out_ += "ENTRY ";
  computation_name(id);
  out_ += ' ';
  if (options_.style == PrintStyle::Long) signature(c);
  body(id, kStep);
  if (!c.execution_thread.empty()) {
    out_ += ", execution_thread=";
    write_string(out_, c.execution_thread);
  }
  out_ += '\n';
}

void Printer::signature(const Computation& c) {
  out_ += '(';
  for (size_t i = 0; i < c.parameters.size(); ++i) {
    if (i) out_ += ", ";
    write_index(out_, i);
    if (c.parameters[i] == InstrId::None) continue;
    const Instruction& p = module_[c.parameters[i]];
    if (const auto it = instruction_names_.find(index_of(c.parameters[i])); it != instruction_names_.end())
      out_ += it->second;
    else
      out_ += p.name;
    out_ += ": ";
    write_shape(out_, p.shape, false);
  }
  out_ += ") -> ";
  if (c.root != InstrId::None) write_shape(out_, module_[c.root].shape, false);
  out_ += ' ';
}

void Printer::body(CompId id, int indent) {
  out_ += "{\n";
  for (InstrId i : module_[id].order) line(i, indent);
  out_.append(static_cast<size_t>(indent - kStep), ' ');
  out_ += '}';
}

void Printer::line(InstrId id, int indent) {
  const Instruction& instr = module_[id];
  out_.append(static_cast<size_t>(indent), ' ');
  if (module_[instr.parent].root == id) out_ += "ROOT ";
  instruction_name(id);
  out_ += " = ";
  write_shape(out_, instr.shape, options_.layouts);
  out_ += ' ';
  out_ += op_info(instr.op).text;
  out_ += '(';
  operands(instr);
  out_ += ')';
  if (instr.attrs) fields(instr);
  if (!instr.called.empty()) regions(instr, indent);
  if (instr.extras) extras(*instr.extras);
  out_ += '\n';
}

void Printer::instruction(InstrId id) {
  line(id, 0);
  out_.pop_back();
}

void Printer::operands(const Instruction& instr) {
  if (instr.op == Op::PARAMETER) return write(out_, instr.as<ParameterAttrs>().number);
  if (instr.op == Op::CONSTANT)
    return write_literal(out_, module_.literal(instr), large_constants(), false, options_.layouts);
  for (size_t i = 0; i < instr.operands.size(); ++i) {
    if (i) out_ += ", ";
    write_index(out_, i);
    if (canonical()) {
      write_shape(out_, module_[instr.operands[i]].shape, options_.layouts);
      out_ += ' ';
    }
    instruction_name(instr.operands[i]);
  }
}

void Printer::called(CompId id, int indent) {
  if (canonical())
    body(id, indent + kStep);
  else
    computation_name(id);
}

void Printer::regions(const Instruction& instr, int indent) {
  const auto one = [&](std::string_view text, size_t i) {
    if (i >= instr.called.size()) return;
    out_ += text;
    called(instr.called[i], indent);
  };
  const auto list = [&](std::string_view text) {
    out_ += text;
    for (size_t i = 0; i < instr.called.size(); ++i) {
      if (i) out_ += ", ";
      called(instr.called[i], indent);
    }
    out_ += '}';
  };
  switch (op_info(instr.op).regions) {
    case Regions::NONE:
      return;
    case Regions::TO_APPLY:
      return one(", to_apply=", 0);
    case Regions::CONDITION_BODY:
      one(", condition=", 0);
      return one(", body=", 1);
    case Regions::SELECT_SCATTER:
      one(", select=", 0);
      return one(", scatter=", 1);
    case Regions::CALLS:
      // Updates and dones do not repeat the computation of their start.
      if (instr.op != Op::ASYNC_UPDATE && instr.op != Op::ASYNC_DONE) one(", calls=", 0);
      return;
    case Regions::CUSTOM:
      return list(", called_computations={");
    case Regions::BRANCHES:
      if (!instr.operands.empty() && module_[instr.operands[0]].shape.type() == Type::PRED) {
        one(", true_computation=", 0);
        return one(", false_computation=", 1);
      }
      return list(", branch_computations={");
  }
}

}  // namespace text

std::string print_module(const Module& module, const PrintOptions& options) {
  std::string out;
  out.reserve(module.instruction_count() * 128 + 256);
  text::Printer(module, options, out).module_text();
  return out;
}

std::string print_computation(const Module& module, CompId computation, const PrintOptions& options) {
  std::string out;
  text::Printer printer(module, options, out);
  printer.find_double_names();
  printer.computation(computation);
  return out;
}

std::string print_instruction(const Module& module, InstrId instruction, const PrintOptions& options) {
  std::string out;
  text::Printer(module, options, out).instruction(instruction);
  return out;
}

}  // namespace collet::hlo
