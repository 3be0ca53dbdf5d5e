// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "conformance/contract/array_layout.h"
#include "conformance/contract/instance.h"
#include "conformance/oracle/bounds.h"
#include "hlo/ir/literal.h"
#include "hlo/ir/module.h"
#include "hlo/program/write.h"

/// \file
/// Builds programs for a backend's table: converts HLO text to a program block, asks for verdicts, and compiles an
/// executable.

namespace collet::conformance {

/// How a program holds the data of its constants.
enum class Constants {
  ByLimit,      ///< large constants are arguments
  AsArguments,  ///< all constants are arguments
  Inline        ///< all constants are inside the program
};

/// How a program is written.
struct TestProgramOptions {
  Constants constants = Constants::ByLimit;
  size_t name_bytes = 0;  ///< length of the module's name, which enlarges the block by this number of bytes
  bool scalars_by_value = false;
  uint32_t replicas = 1, partitions = 1;
};

/// A program block made from HLO text, and the evaluation of that text.
class TestProgram {
 public:
  /// `aliases`: the value of input_output_alias in the header, such as "{}: (0, {}, may-alias)"; empty for none.
  static Expected<std::unique_ptr<TestProgram>> make(std::string_view body, std::string_view aliases = {},
                                                     const TestProgramOptions& how = {});

  const collet_program* get() const { return program_.get(); }
  std::span<const char> bytes() const { return program_.block.bytes(); }
  const std::vector<hlo::Shape>& results() const { return results_; }
  /// Returns the shapes of the inputs. Constants that are passed as arguments are not inputs; they come after them.
  const std::vector<hlo::Shape>& inputs() const { return inputs_; }
  const std::vector<hlo::Literal>& constants() const { return constants_; }
  std::vector<hlo::ProgramAlias> aliases() const;
  /// Draws small whole numbers for each input, so that sums and products are exact. Another seed gives other numbers.
  std::vector<hlo::Literal> draw(uint64_t seed) const;
  Expected<std::vector<hlo::Literal>> evaluate(const std::vector<hlo::Literal>& inputs) const;
  /// Evaluates the program with several participants. Returns the results by participant.
  Expected<std::vector<std::vector<hlo::Literal>>> evaluate_all(const std::vector<std::vector<hlo::Literal>>& inputs,
                                                                uint32_t partitions) const;

 private:
  TestProgram() = default;
  std::unique_ptr<hlo::Module> module_;
  hlo::Program program_;
  std::vector<hlo::Shape> inputs_, results_;
  std::vector<hlo::Literal> constants_;
};

/// Returns the ids of the entry's ops.
std::vector<uint32_t> entry_ops(const collet_program* program);
/// Returns the kind, name and type under which questions about an op are counted.
Uses::Key use_of(const collet_program* program, const collet_op* op);
/// Asks about ops in one call and checks what every verdict promises. Returns false, and records a failure, if the call
/// fails.
bool ask(Instance& instance, const collet_program* program, std::span<const uint32_t> ops,
         std::vector<collet_verdict>& verdicts, uint32_t device = 0);
/// True if the SDK would offer all ops of the program and the device accepts each of them.
bool accepts(Instance& instance, const collet_program* program, uint32_t device = 0);

/// A compiled program; released with its owner.
class Executable {
 public:
  Executable() = default;
  Executable(const collet_backend* table, collet_backend_executable* handle) : table_(table), handle_(handle) {}
  Executable(Executable&& other) noexcept { *this = std::move(other); }
  Executable& operator=(Executable&& other) noexcept;
  ~Executable() { reset(); }
  void reset();
  explicit operator bool() const { return handle_ != nullptr; }
  collet_backend_executable* handle() const { return handle_; }

  uint64_t workspace_bytes = 0, workspace_alignment = 0, resident_bytes = 0, traffic_bytes = 0;
  std::vector<uint32_t> absorbed;  ///< indices of the constants that the backend has absorbed

 private:
  const collet_backend* table_ = nullptr;
  collet_backend_executable* handle_ = nullptr;
};

/// Options of a call of compile.
struct CompileChoice {
  uint32_t device = 0;
  int32_t (*progress)(void*, double, const char*) = nullptr;
  void* user = nullptr;
  uint32_t rejection_room = 16;
  std::vector<uint32_t> assignment = {};  ///< the devices of several participants; empty: one, on `device`
};
/// The result of compile; `rejected` are the ops that the backend named.
struct CompileResult {
  collet_status status = COLLET_OK;
  std::string message;
  Executable executable;
  std::vector<uint32_t> rejected;
};
/// Calls compile and checks what every such call promises.
CompileResult compile(Instance& instance, const collet_program* program, const CompileChoice& choice = {});

/// True if compile declined a program of several ops as a whole. It may, although `supports` said yes to each of them, and need not name
/// ops at which to cut.
bool declines_whole(const collet_program* program, const CompileResult& made);

/// True if an argument or result is not dense and row-major, according to the table "layout". Cases that write arguments and read
/// results themselves leave such executables out; layouts.cc runs them.
bool has_layouts(Instance& instance, const TestProgram& program, const Executable& executable);

struct Sample;

/// A program that a backend accepts, and its executable.
struct PreparedProgram {
  std::unique_ptr<TestProgram> program;
  Executable executable;
  explicit operator bool() const { return static_cast<bool>(executable); }
};
/// Makes the program of `body`, asks about it, and compiles it. Returns an empty object if the backend declines an op, and
/// or a program of several ops as a whole, and then skips the case if `or_skip`. Records a failure for every other error of compile.
PreparedProgram prepare(Instance& instance, std::string_view body, std::string_view aliases = {},
                        const CompileChoice& choice = {}, bool or_skip = true, size_t name_bytes = 0);
/// Calls `judge` for each sample that the backend takes, until it returns false. Skips the case if there is none.
void for_each_accepted(Instance& instance, const std::function<bool(const Sample&, const PreparedProgram&)>& judge);
/// What became of a sample.
enum class Visit : uint8_t {
  Taken,
  Declined,  ///< the backend declines the program as a whole
  Stop       ///< the case has failed; no further sample is visited
};
/// Calls `judge` for each sample whose ops the backend accepts. Nothing has been compiled. Skips the case if all are declined.
void for_each_offered(Instance& instance, const std::function<Visit(const Sample&, const TestProgram&)>& judge);
/// Compiles the program of a sample from a block in another form. Returns Declined if the backend declines the program in the
/// SDK's form as well, or gives it layouts of its own, and Stop, without a record, if it declines this form alone.
Visit compile_form(Instance& instance, const Sample& sample, const TestProgram& program, const collet_program* form,
                   CompileResult& made);
/// True if the program of a sample computes what it should when it is compiled as the SDK writes it. For the message of a failure.
bool runs_right(Instance& instance, const Sample& sample, const TestProgram& program);
/// Returns an elementwise program of two arguments of one shape that the backend accepts, preferably of f32[300]. Returns an
/// empty string, and skips the case, if there is none.
std::string accepted_sum(Instance& instance);

/// How arguments and results are placed in buffers.
struct Placement {
  uint32_t device = 0;
  bool take_aliases = false;           ///< uses one buffer for both sides of may-aliases as well as must-aliases
  bool one_buffer = false;             ///< places everything in one buffer, at different offsets
  bool tight = false;                  ///< places each array in a buffer of exactly its size
  bool donate_all = false;             ///< also donates arguments that are not aliased with a result
  std::vector<uint32_t> same_as = {};  ///< argument number i has the memory of argument number same_as[i]
};

/// Buffers for launches of one executable. Each argument, each result and the workspace has guard bytes around it, which must
/// not change. Results, workspace and the padding of arguments are filled with garbage before each run. Arguments and results
/// have the layouts that the executable states.
class GuardedLaunch {
 public:
  GuardedLaunch(Instance& instance, const TestProgram& program, const Executable& executable, Placement placement);
  /// The layouts of arguments and results.
  const Layouts& layouts() const { return layouts_; }
  /// Runs the executable and checks results, arguments and guards. Messages begin with `what`. Returns false after a failure.
  bool run(uint64_t seed, const std::string& what, const Bound& bound = {});
  /// Runs with these inputs; `seed` determines the garbage.
  bool run_with(const std::vector<hlo::Literal>& inputs, uint64_t seed, const std::string& what,
                const Bound& bound = {});
  /// The launch of the last run, or, after fill(), of the next one.
  collet_launch& launch() { return launch_; }
  std::vector<collet_argument>& arguments() { return arguments_; }
  std::vector<collet_argument>& results() { return results_; }
  /// Writes arguments and garbage to the device.
  bool fill(const std::vector<hlo::Literal>& inputs, uint64_t seed);
  collet_status execute(std::string* message = nullptr);
  /// Checks that all memory is as fill() left it.
  bool is_untouched(const std::string& what, Promise promise);
  /// Reads the present contents of the results, dense and row-major.
  std::vector<Bytes> read_results();
  /// Reads the results and checks them only, without arguments and guards.
  bool judge_results(const std::vector<hlo::Literal>& inputs, const std::string& what, const Bound& bound = {});
  /// Checks all memory after the last execute, for the inputs of fill().
  bool judge(const std::vector<hlo::Literal>& inputs, const std::string& what, const Bound& bound = {});

 private:
  struct Slot {
    uint64_t bytes = 0, offset = 0;
    size_t block = 0;
  };
  struct Block {
    Buffer buffer;
    Bytes image;  // contents written by fill()
  };
  bool judge_results(const std::vector<hlo::Literal>& inputs, const std::vector<Bytes>& now, const std::string& what,
                     const Bound& bound);
  Slot place(uint64_t bytes, uint64_t alignment);
  void allocate();
  collet_argument argument(const Slot& slot, uint32_t flags, bool has_layout = false) const;
  uint8_t* image(const Slot& slot) { return blocks_[slot.block].image.data() + slot.offset; }

  Instance& instance_;
  const TestProgram& program_;
  const Executable& executable_;
  Placement placement_;
  uint64_t alignment_;
  Layouts layouts_;
  bool good_ = true;
  std::vector<uint64_t> sizes_;
  std::vector<Block> blocks_;
  std::vector<Slot> argument_slots_, result_slots_;
  Slot workspace_slot_;
  std::vector<bool> donated_, absorbed_;
  std::vector<collet_argument> arguments_, results_;
  collet_launch launch_{};
};

}  // namespace collet::conformance
