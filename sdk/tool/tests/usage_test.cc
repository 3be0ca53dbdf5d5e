// SPDX-License-Identifier: Apache-2.0
// Tests what the command line refuses, and time limits.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

struct WrongUse {
  const char* arguments;
  int code;
  const char* says;
};

TEST(Command, ExitCodesTellWhoseFaultItIs) {
  const std::string add = "sdk/tool/tests/data/add.hlo";
  const std::vector<WrongUse> uses = {
      {"", 2, "Usage: collet"},
      {"walk", 2, "walk"},
      {"run", 2, "FILE is required"},
      {"run --no-such-option x", 2, "--no-such-option"},
      {"info", 2, "name a FILE"},
      {"cache", 2, "COLLET_CACHE_DIR"},
      {"cache --folder x --clean --trim 1", 2, "--trim"},
      {"cache --folder no/such/folder", 4, "no/such/folder"},
      {"cache --folder sdk/tool/tests/data/add.hlo", 4, "Not a directory"},
      {"info --ops --format pdf", 2, "pdf"},
      {"opt --passes nonsense sdk/tool/tests/data/add.hlo", 2, "there is no pass 'nonsense'"},
      {"opt --passes simplfy sdk/tool/tests/data/add.hlo", 2, "did you mean simplify?"},
      {"opt --pipeline nonsense sdk/tool/tests/data/add.hlo", 2, "there is no pipeline"},
      {"conform --shard 3/2", 2, "--shard"},
      {"conform --backend interpreter --filter nothing/at/all", 2, "no case matches"},
      {"conform --corpus sdk/tool/tests/golden", 2, "is no corpus"},
      {"run no_such_file.hlo", 3, "no_such_file.hlo cannot be read"},
      {"run sdk --backend interpreter", 3, "is a folder"},
      {"run sdk/tool/tests/data/broken.hlo --backend interpreter", 3, "broken.hlo:5:"},
      {"opt sdk/tool/tests/data/broken.hlo", 3, "negat"},
      {"info sdk/tool/tests/data/broken.hlo", 3, "broken.hlo:5:"},
      {"run sdk/tool/tests/data/add.hlo --backend interpreter --inputs sdk/tool/tests/data/add.hlo", 3,
       "names 1 files"},
      {"run sdk/tool/tests/data/add.hlo --backend interpreter --inputs random:x", 2, "seed"},
      {"run sdk/tool/tests/data/add.hlo --backend interpreter --inputs random:99999999999999999999", 2, "seed"},
      {"run sdk/tool/tests/data/add.hlo --backend no_such_backend", 4, "no_such_backend"},
      {"info --backend no_such_backend", 4, "no_such_backend"},
      {"conform --backend no_such_backend --filter add/f32/1/unit", 4, "no_such_backend"},
      {"bench --backend no_such_backend", 4, "no_such_backend"},
      {"run sdk/tool/tests/data/add.hlo --backend sdk/tool/tests/data/add.hlo", 4, "add.hlo"},
      {"run sdk/tool/tests/data/add.hlo --repeat 0", 2, "--repeat"},
      {"run sdk/tool/tests/data/add.hlo --repeat 99999999999", 2, "--repeat"},
      {"bench --repeat 0", 2, "--repeat"},
      {"bench --filter no_such_case", 2, "no_such_case"},
      {"conform --jobs 0", 2, "--jobs"},
      {"conform --corpus sdk/tool --html page.html", 2, "--corpus"},
      {"conform --corpus sdk/tool --badge badge.svg", 2, "--badge"},
      {"conform --corpus sdk/tool --shard 0/4", 2, "--shard"},
      {"conform --corpus sdk/tool --seed 3", 2, "--seed"},
      // Output files that cannot be written are reported before the program runs.
      {"run sdk/tool/tests/data/add.hlo --backend interpreter --json no/such/folder/x.json", 4, "cannot be written"},
      {"run sdk/tool/tests/data/add.hlo --backend interpreter --output sdk/tool/tests/data/add.hlo", 4, "add.hlo"},
      {"run sdk/tool/tests/data/add.hlo --backend interpreter --json sdk/tool", 4, "sdk/tool cannot be written"},
      {"conform --backend interpreter --junit no/such/folder/x.xml", 4, "cannot be written"},
      {"conform --backend interpreter --html no/such/folder/x.html", 4, "cannot be written"},
      {"bench --json no/such/folder/x.json", 4, "cannot be written"},
      {"opt sdk/tool/tests/data/add.hlo -o no/such/folder/x.hlo", 4, "cannot be written"},
  };
  for (const WrongUse& use : uses) {
    const Ran ran = collet(use.arguments);
    EXPECT_EQ(ran.code, use.code) << use.arguments << "\n" << ran.err;
    EXPECT_TRUE(contains(ran.err, use.says)) << use.arguments << "\n" << ran.err;
    EXPECT_EQ(ran.out, "") << use.arguments;
    EXPECT_FALSE(contains(ran.err, "\033[")) << "colour on what is no terminal";
  }
}

// Values that are no number, too large, of the wrong sign, or empty.
TEST(Command, ValuesThatMeanNothing_AreWrongUsage) {
  const Folder folder;
  const std::string run = "run sdk/tool/tests/data/add.hlo --backend interpreter ", conform = "conform --list ",
                    opt = "opt sdk/tool/tests/data/add.hlo ",
                    reduce = "reduce sdk/tool/tests/data/add.hlo -o " + (folder / "x.hlo") + " ",
                    diff = "diff sdk/tool/tests/data/add.hlo sdk/tool/tests/data/add.hlo ";
  const std::string estimate = "estimate sdk/tool/tests/data/add.hlo --machine templates/machines/torus.json ";
  const std::string compile = "compile sdk/tool/tests/data/add.hlo --target x86_64 --output " + (folder / "code") + " ";
  const std::vector<std::string> numbers = {conform + "--memory",    conform + "--failures", conform + "--jobs",
                                            conform + "--seed",      diff + "--limit",       run + "--repeat",
                                            "bench --list --repeat", estimate + "--devices", estimate + "--most",
                                            estimate + "--project",  compile + "--threads",  "accuracy --list --step"};
  for (const std::string& line : numbers)
    for (const char* value : {"-1", "x", "''", "1x", "' 1'", "0x10", "1.5", "nan", "inf", "99999999999999999999"}) {
      const Ran ran = collet(line + " " + value);
      EXPECT_EQ(ran.code, 2) << line << " " << value;
      EXPECT_EQ(ran.out, "") << line << " " << value;
    }
  EXPECT_EQ(collet(conform + "--memory 99999999999999999").code, 2);
  for (const std::string& line : {estimate + "--trips", estimate + "--measured", std::string("bench --list --slower"),
                                  std::string("bench --list --peak"), std::string("bench --list --bandwidth"),
                                  std::string("accuracy --list --most")})
    for (const char* value : {"-1", "x", "''", "1x", "' 1'", "0x10", "+1", "nan", "inf", "1e99", "1e999"}) {
      const Ran ran = collet(line + " " + value);
      EXPECT_EQ(ran.code, 2) << line << " " << value;
      EXPECT_EQ(ran.out, "") << line << " " << value;
    }
  EXPECT_EQ(collet(estimate + "--partition --mesh 4294967296x4294967296").code, 2);
  for (const std::string& line : {conform + "--timeout", run + "--timeout", reduce + "--test false --timeout"})
    for (const char* value : {"-1", "x", "''", "1x", "nan", "-nan", "inf", "1e999"})
      EXPECT_EQ(collet(line + " " + value).code, 2) << line << " " << value;
  for (const char* value : {"-1/2", "1/-2", "-3/-2", "0/99999999999", "/", "1/", "/2", "0/1/2", "''", "x", "0/2x"})
    EXPECT_EQ(collet(conform + "--shard " + value).code, 2) << value;
  for (const char* value : {"''", "999", "-1", "1x"})
    EXPECT_EQ(collet(reduce + "--test false --exit " + value).code, 2) << value;
  const std::vector<std::string> texts = {
      run + "--compare",    run + "--json",    run + "--output",           run + "--dump-to",
      run + "--trace",      run + "--inputs",  conform + "--filter",       conform + "--html",
      conform + "--corpus", opt + "--emit",    opt + "--pipeline",         opt + "-o",
      reduce + "--test",    diff + "--ignore", "bench --list --filter",    "bench --list --against",
      "info --backend",     "new acme --out",  "run --backend interpreter"};
  for (const std::string& line : texts) {
    const Ran ran = collet(line + " ''");
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_EQ(ran.out, "") << line;
  }
  for (const char* form : {"artifact=", "artifact=banana", "artifact=1.17.0x", "artifact=99.0.0", "svg=", "="})
    EXPECT_EQ(collet(opt + "--emit " + form).code, 2) << form;
}

TEST(Command, LargeNumbersOfSeconds_MeanALongTime) {
  for (const char* seconds : {"1e300", "1e10", "100000001"})
    EXPECT_EQ(collet(std::string("run sdk/tool/tests/data/add.hlo --backend interpreter --timeout ") + seconds).code, 0)
        << seconds;
  EXPECT_EQ(collet("conform --backend interpreter --filter negate/f32/17/unit --timeout 1e300").code, 0);
}

// A full disk must be reported, and a device that is named as output must not be replaced.
TEST(Command, SaysThatItCannotWrite) {
  const Folder folder;
  const std::string tool = "'" + build_dir() + "/bin/collet' ", add = "sdk/tool/tests/data/add.hlo";
  const std::vector<std::string> lines = {"info --ops >/dev/full",
                                          "info --ops --json /dev/full >/dev/null",
                                          "opt " + add + " >/dev/full",
                                          "run " + add + " --backend interpreter >/dev/full",
                                          "run " + add + " --backend interpreter --json - >/dev/full",
                                          "completion bash >/dev/full",
                                          "--help >/dev/full",
                                          "--version >/dev/full",
                                          "run --help >/dev/full"};
  for (const std::string& line : lines) {
    const int status = std::system((tool + line + " 2>" + (folder / "err")).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 4) << line;
    const std::string said = contents(folder / "err");
    EXPECT_TRUE(contains(said, "No space left")) << line << "\n" << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << line << "\n" << said;
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

// Files without an end, or pipes that nobody writes to.
TEST(Command, FilesThatAreNone_AreRefusedAtOnce) {
  const Folder folder;
  const std::string pipe = folder / "pipe", large = folder / "large";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  write(large, "");
  std::filesystem::resize_file(large, uint64_t{1} << 40);
  const std::string add = "sdk/tool/tests/data/add.hlo", run = "run --backend interpreter ",
                    inputs = run + add + " --inputs ";
  const std::string limited = "timeout 60";
  const std::vector<std::string> lines = {run + "/dev/zero",
                                          "opt /dev/zero",
                                          "info /dev/zero",
                                          "diff " + add + " /dev/zero",
                                          run + large,
                                          inputs + "/dev/zero /dev/zero",
                                          inputs + large + " " + large,
                                          "conform --backend interpreter --corpus /dev/zero"};
  for (const std::string& line : lines) {
    const Ran ran = collet(line, limited);
    EXPECT_TRUE(ran.code == 2 || ran.code == 3) << line << " " << ran.code << ran.err;
  }
  const Ran library = collet("run " + add + " --backend " + pipe, limited);
  EXPECT_EQ(library.code, 4) << library.err;
  // A program and its inputs may come from pipes.
  const std::string x = folder / "x.bin", input = folder / "input";
  write(x, std::string(12, '\0'));
  ASSERT_EQ(mkfifo(input.c_str(), 0600), 0);
  const Ran piped = collet(run + pipe + " --inputs " + input + " " + x,
                           "cat " + add + " >" + pipe + " & cat " + x + " >" + input + " & " + limited);
  EXPECT_EQ(piped.code, 0) << piped.err;
}

// Nobody reads the pipe to which the JSON is written: the time limit also includes what follows the run.
TEST(Run, TimeoutHoldsForTheWholeCommand) {
  const Folder folder;
  const std::string line = "run sdk/tool/tests/data/add.hlo --backend interpreter --timeout 1 ";
  ASSERT_EQ(mkfifo((folder / "stuck").c_str(), 0600), 0);
  const Ran stuck = collet(line + "--json " + (folder / "stuck"), "timeout 60");
  EXPECT_EQ(stuck.code, 5) << stuck.err;
  EXPECT_TRUE(contains(stuck.err, "no answer within 1 s: showing the results of")) << stuck.err;
}

// What stands in the folder of the outputs, under their names, is replaced and not written to.
TEST(Run, OutputsReplaceWhatHasTheirNames) {
  const Folder folder;
  std::filesystem::create_directory(folder / "results");
  const std::string output = folder / "results/output_0.bin";
  ASSERT_EQ(mkfifo(output.c_str(), 0600), 0);
  const Ran ran =
      collet("run sdk/tool/tests/data/add.hlo --backend interpreter --timeout 30 --output " + (folder / "results"),
             "timeout 60");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(std::filesystem::is_regular_file(output));
}

TEST(Run, OptionsThatTheCpuBackendRefuses_AreWrongUsage) {
  if (!has_backend("cpu")) GTEST_SKIP() << "there is no cpu backend in this build";
  const std::vector<std::string> verbs = {"run sdk/tool/tests/data/add.hlo --backend cpu --option ",
                                          "conform --backend cpu --filter negate/f32/17/unit --option ",
                                          "bench --backend cpu --filter mnist --repeat 1 --option "};
  for (const std::string& verb : verbs) {
    const Ran ran = collet(verb + "threads=banana");
    EXPECT_EQ(ran.code, 2) << verb;
    EXPECT_TRUE(contains(ran.err, "option 'threads': 'banana'")) << verb << ran.err;
  }
  for (const char* option :
       {"threads=-5", "threads=0", "threads=1000000000", "threads=2x", "threads=", "fuse=banana",
        "fuse=", "features=banana", "features=+banana", "features=-avx2,", "features=-sse2", "cpu=banana"})
    EXPECT_EQ(collet(verbs[0] + option).code, 2) << option;
  for (const char* option : {"threads=1", "threads=256", "fuse=0", "features=", "features=-sse4.1"})
    EXPECT_EQ(collet(verbs[0] + option).code, 0) << option;
  const Ran variable = collet("run sdk/tool/tests/data/add.hlo --backend cpu", "COLLET_CPU_THREADS=many");
  EXPECT_EQ(variable.code, 2);
  EXPECT_TRUE(contains(variable.err, "COLLET_CPU_THREADS")) << variable.err;
}

// The printed commands must be valid in a shell.
TEST(New, PrintsCommandsThatAShellReads) {
  const Folder folder;
  const Ran ran = collet("new acme --out \"" + (folder / "it's a folder") + "\"");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "cmake -S '" + folder.path() + "/it'\\''s a folder' -B '" + folder.path())) << ran.out;
  EXPECT_TRUE(contains(ran.out, "--backend '" + folder.path())) << ran.out;
}

// When memory runs out, the message names the task.
TEST(Command, WithoutMemory_SaysWhatNeededIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need an address space of their own";
#endif
  const Folder folder;
  const std::string file = folder / "large.hlo", inputs = folder / "x.bin";
  write(file, "HloModule m\nENTRY e {\n  x = f32[400000000] parameter(0)\n  ROOT r = f32[400000000] negate(x)\n}\n");
  write(inputs, "");
  std::filesystem::resize_file(inputs, 1600000000);
  for (const std::string& how : {std::string(" --inputs zeros"), std::string(), " --inputs " + inputs}) {
    const Ran ran = collet("run " + file + " --backend interpreter" + how, "ulimit -v 1500000;");
    EXPECT_EQ(ran.code, 4) << how << ran.err;
    EXPECT_TRUE(contains(ran.err, "memory")) << how << ran.err;
    EXPECT_TRUE(contains(ran.err, "large.hlo")) << how << ran.err;
    EXPECT_FALSE(contains(ran.err, "bad_alloc")) << how << ran.err;
  }
}

// If the system gives fewer threads than requested, those do the work.
TEST(Command, WithFewerThreadsThanAskedFor_Runs) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need an address space of their own";
#endif
  const std::string line = "run sdk/tool/tests/data/add.hlo --backend cpu --timeout 60 --option threads=256";
  const Ran ran = collet(line, "ulimit -v 800000;");
  EXPECT_TRUE(ran.code == 0 || ran.code == 4) << ran.code << ran.err;
}

// A refusal names the custom call, or the property of a sort.
TEST(Run, RefusalsOfTheCpuBackend_NameTheReason) {
  if (!has_backend("cpu")) GTEST_SKIP() << "there is no cpu backend in this build";
  const Folder folder;
  const std::string file = folder / "a.hlo";
  write(file,
        "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] custom-call(x), "
        "custom_call_target=\"my_call\"\n}\n");
  const Ran call = collet("run " + file + " --backend cpu --no-fallback");
  EXPECT_TRUE(contains(call.err, "custom-call 'my_call'")) << call.err;
  write(file,
        "HloModule m\nless {\n  a = s8[] parameter(0)\n  b = s8[] parameter(1)\n  ROOT l = pred[] compare(a, b), "
        "direction=LT\n}\nENTRY e {\n  x = s8[] parameter(0)\n  b = s8[2147483648] broadcast(x), dimensions={}\n"
        "  ROOT r = s8[2147483648] sort(b), dimensions={0}, to_apply=less\n}\n");
  const Ran sort = collet("run " + file + " --backend cpu --no-fallback --inputs zeros");
  EXPECT_TRUE(contains(sort.err, "rows with more than 2147483647 elements")) << sort.err;
}

// Names of programs, files and backends, and texts of backends, do not control the terminal.
TEST(Command, ShowsNothingThatControlsTheTerminal) {
  const Folder folder;
  const std::string odd =
                        "\033]0;x\007\xC2\x9B"
                        "2J\x9B"
                        "2J",
                    file = folder / (odd + ".hlo");
  const auto expect_plain = [](const Ran& ran) {
    for (const char c : ran.out + ran.err) EXPECT_TRUE(c == '\n' || c == '\t' || (c >= ' ' && c < 0x7F)) << int{c};
  };
  write(file,
        "HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n  y = f32[8] negate(x)\n  ROOT r = f32[8] custom-call(y), "
        "custom_call_target=\"\\033[31mred\\007\\n2nd\\302\\2332J\\2332J\"\n}\n");
  expect_plain(collet("run '" + file + "' --backend interpreter --explain"));
  expect_plain(collet("run '" + file + "' --backend interpreter --timeout 0.001"));
  expect_plain(collet("info '" + file + "' --json -"));
  expect_plain(collet("opt '" + file + "'"));
  expect_plain(collet("opt '" + file + ".none'"));
  expect_plain(collet("run sdk/tool/tests/data/add.hlo --backend '" + odd + "'"));
  expect_plain(collet("run sdk/tool/tests/data/add.hlo --backend interpreter --option '" + odd + "=1'"));
  expect_plain(collet("conform --backend '" + odd + "' --filter negate/f32/17/unit"));
  expect_plain(collet("conform --verify '" + file + "'"));
  expect_plain(collet("'" + odd + "'"));
  expect_plain(collet("new '" + odd + "'"));
  write(file, "HloModule m\nENTRY e {\n  \xC2\x9B\033[31m = f32[8] parameter(0)\n}\n");
  expect_plain(collet("run '" + file + "' --backend interpreter"));
  EXPECT_TRUE(contains(collet("run '" + file + "' --backend interpreter").err, "\\x1b")) << "it is shown escaped";
  // Folders of dumps have plain names.
  write(file,
        "module @\"a\\1B[31m\\9B/../b\" {\n  func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
        "    return %x : tensor<8xf32>\n  }\n}\n");
  collet("run '" + file + "' --backend interpreter", "COLLET_DUMP='" + (folder / "dump") + "'");
  int files = 0;
  std::error_code ignored;
  for (const auto& one : std::filesystem::recursive_directory_iterator(folder / "dump", ignored)) {
    ++files;
    for (const char c : one.path().filename().string()) EXPECT_TRUE(c >= ' ' && c < 0x7F) << int{c};
  }
  EXPECT_GT(files, 1);
}

// Names and texts from outside are no markup in pages, pictures and XML.
TEST(Command, ShowsNothingThatRunsInABrowser) {
  const Folder folder;
  const std::string turned = "\xE2\x80\xAE";  // U+202E: the text after it runs from right to left
  const std::string odd = turned + "\"><script>alert(1)</script><x y='", page = folder / "page.html",
                    xml = folder / "report.xml", badge = folder / "badge.svg", json = folder / "report.json";
  write(folder / "revision", odd);
  const std::string command =
      "conform --backend interpreter --no-fallback --filter negate/f32/17/unit --revision \"$(cat " +
      (folder / "revision") + ")\" --html " + page + " --junit " + xml + " --badge " + badge + " --json " + json;
  ASSERT_EQ(collet(command).code, 0);
  ASSERT_TRUE(contains(contents(page), "&lt;script&gt;alert(1)"));
  // A report comes from someone else, and so do the names of its cases.
  std::string other = contents(json);
  for (size_t at = 0; (at = other.find("negate/f32/17/unit", at)) != std::string::npos; at += 1)
    other.replace(at, 18, "negate/<script>alert(2)</script>");
  for (size_t at = 0; (at = other.find("\"pass\"", at)) != std::string::npos; at += 1) other.replace(at, 6, "\"fail\"");
  write(folder / "other.json", other);
  collet("conform --diff " + json + " " + (folder / "other.json") + " --html " + (folder / "diff.html"));
  EXPECT_TRUE(contains(contents(folder / "diff.html"), "&lt;script&gt;alert(2)"));
  for (const std::string& file : {page, xml, badge, folder / "diff.html"}) {
    EXPECT_NE(contents(file), "") << file;
    EXPECT_FALSE(contains(contents(file), "<script>alert")) << file;
    EXPECT_FALSE(contains(contents(file), turned)) << file;
    EXPECT_FALSE(contains(contents(file), "\"><x y=")) << file;
  }
}

// The name becomes a namespace, so it must be no keyword, macro, type or function that the headers know.
TEST(New, RefusesWordsOfTheLanguageAndTheLibrary) {
  const Folder folder;
  for (const std::string name : {"ulong",        "u_short",   "collet_status",
                                 "co_await",     "constinit", "nullptr",
                                 "thread_local", "xor_eq",    "typeof_unqual",
                                 "posix",        "errno",     "linux",
                                 "unix",         "i386",      "assert",
                                 "stdin",        "time",      "remove",
                                 "signal",       "index",     "exit",
                                 "malloc",       "environ",   "y0",
                                 "size_t",       "my_t",      "tm"}) {
    const Ran ran = collet("new " + name + " --out " + (folder / name));
    EXPECT_NE(ran.code, 0) << name;
    EXPECT_TRUE(contains(ran.err, "another meaning in C") || contains(ran.err, "another meaning in the C library"))
        << ran.err;
  }
  for (const std::string name : {"acme", "my_chip", "tile", "npu3"})
    EXPECT_EQ(collet("new " + name + " --out " + (folder / name)).code, 0) << name;
}

}  // namespace
}  // namespace collet::tool::testing
