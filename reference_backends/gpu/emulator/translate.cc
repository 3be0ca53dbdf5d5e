// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/translate.h"

#include <llvm/IR/Module.h>

#include <set>

#include "reference_backends/gpu/emulator/function_translator.h"

namespace collet::gpu::emulator {
namespace {

/// Calls `visit` for all operands, including nested ones.
void for_each_operand(const std::vector<Operand>& operands, const std::function<void(const Operand&)>& visit) {
  for (const Operand& o : operands) {
    visit(o);
    for_each_operand(o.elements, visit);
  }
}

uint64_t aligned(uint64_t at, uint64_t align) {
  return (at + align - 1) / align * align;
}

uint32_t place(uint64_t& at, const Variable& v, uint64_t most, const char* what) {
  at = aligned(at, v.align);
  const uint64_t offset = at;
  at += v.bytes;
  if (at > most) {
    throw PtxError(v.line, std::string("the ") + what + " variables take more than " + std::to_string(most) + " bytes");
  }
  return static_cast<uint32_t>(offset);
}

}  // namespace

ModuleLayout lay_out(const Module& module, const std::function<uint64_t(const Variable&)>& allocate) {
  constexpr uint64_t kMostLocal = 512 << 10;
  ModuleLayout layout;
  // Finds the kernels that use each shared variable of the module. A variable that a single kernel uses takes no memory
  // in the others.
  std::map<const Variable*, std::set<const Function*>> users;
  for (const auto& f : module.functions) {
    for (const Statement& s : f->body) {
      for_each_operand(s.instruction.operands, [&](const Operand& o) {
        if (o.variable && o.variable->space == Space::kShared) users[o.variable].insert(f.get());
      });
    }
  }
  const auto sole_user = [&](const Variable& v) -> const Function* {
    const auto& set = users[&v];
    return set.size() == 1 && (*set.begin())->is_entry ? *set.begin() : nullptr;
  };
  const auto place_global = [&](const Variable& v) {
    if (v.is_extern && v.space != Space::kShared)
      throw PtxError(v.line, "no definition of the external variable " + v.name);
    if (v.space == Space::kGlobal || v.space == Space::kConst) layout.global[&v] = allocate(v);
  };
  uint64_t common = 0, local = 0;
  for (const auto& v : module.variables) {
    place_global(*v);
    if (v->space == Space::kShared && !v->is_unsized && !sole_user(*v) && !users[v.get()].empty()) {
      layout.shared[v.get()] = kSharedBase + place(common, *v, kMostSharedStatic, "shared");
    }
  }
  for (const auto& f : module.functions) {
    for (const auto& v : f->variables) {
      place_global(*v);
      if (v->space == Space::kLocal) layout.local[v.get()] = place(local, *v, kMostLocal, "local");
      if (v->space == Space::kShared && !v->is_unsized && !f->is_entry) {
        layout.shared[v.get()] = kSharedBase + place(common, *v, kMostSharedStatic, "shared");
      }
    }
  }
  for (const auto& f : module.functions) {
    if (!f->is_entry) continue;
    uint64_t own = common;
    for (const auto& v : module.variables) {
      if (v->space == Space::kShared && !v->is_unsized && sole_user(*v) == f.get()) {
        layout.shared[v.get()] = kSharedBase + place(own, *v, kMostSharedStatic, "shared");
      }
    }
    for (const auto& v : f->variables) {
      if (v->space == Space::kShared && !v->is_unsized) {
        layout.shared[v.get()] = kSharedBase + place(own, *v, kMostSharedStatic, "shared");
      }
    }
    layout.static_shared[f.get()] = static_cast<uint32_t>(own);
  }
  layout.local_bytes = static_cast<uint32_t>(aligned(local, 16));
  return layout;
}

std::vector<Kernel::Parameter> parameters_of(const Function& function, uint32_t& bytes) {
  constexpr uint64_t kMost = 32764;
  std::vector<Kernel::Parameter> parameters;
  uint64_t at = 0;
  for (const Variable& v : function.parameters) {
    parameters.push_back({place(at, v, kMost, "parameter"), static_cast<uint32_t>(v.bytes)});
  }
  bytes = static_cast<uint32_t>(at);
  return parameters;
}

std::map<std::string, FunctionFacts> translate(const Module& module, const ModuleLayout& layout, llvm::Module& out) {
  struct Made {
    llvm::Function* code;
    FunctionFacts facts;
    std::set<const Function*> callees;
  };
  std::map<const Function*, Made> made;
  llvm::LLVMContext& context = out.getContext();
  auto* const pointer = llvm::PointerType::get(context, 0);
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const Function& f = *module.functions[i];
    if (!f.has_body) continue;
    const size_t arguments = f.is_entry ? 1 : 1 + f.results.size() + f.parameters.size();
    auto* const type =
        llvm::FunctionType::get(llvm::Type::getVoidTy(context), std::vector<llvm::Type*>(arguments, pointer), false);
    const std::string symbol = "ptx_" + std::to_string(i);
    auto* const code = llvm::Function::Create(
        type, f.is_entry ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage, symbol, out);
    code->addFnAttr(llvm::Attribute::NoUnwind);
    made[&f] = {code, {.symbol = symbol}, {}};
  }
  for (auto& [f, m] : made) {
    FunctionTranslator translator(module, *f, layout, out, *m.code);
    translator.run();
    const std::string symbol = m.facts.symbol;
    m.facts = translator.facts();
    m.facts.symbol = symbol;
    m.callees = translator.callees();
  }
  // Facts about a callee, such as waiting for other threads, hold for its callers, too.
  for (size_t round = 0; round <= made.size(); ++round) {
    bool changed = false;
    for (auto& [f, m] : made) {
      for (const Function* callee : m.callees) {
        const FunctionFacts& facts = made.at(callee).facts;
        changed |= (facts.meets && !m.facts.meets) || (facts.uses_shared && !m.facts.uses_shared);
        m.facts.meets |= facts.meets;
        m.facts.uses_shared |= facts.uses_shared;
      }
    }
    if (!changed) break;
  }
  // Recursion is refused, because each call would need its own local memory.
  std::map<const Function*, int> state;
  const std::function<void(const Function*)> visit = [&](const Function* f) {
    state[f] = 1;
    for (const Function* callee : made.at(f).callees) {
      if (state[callee] == 1) throw PtxError(callee->line, "recursion is not supported: " + callee->name);
      if (!state[callee]) visit(callee);
    }
    state[f] = 2;
  };
  std::map<std::string, FunctionFacts> facts;
  for (auto& [f, m] : made) {
    if (!state[f]) visit(f);
    if (f->is_entry) facts[f->name] = m.facts;
  }
  return facts;
}

}  // namespace collet::gpu::emulator
