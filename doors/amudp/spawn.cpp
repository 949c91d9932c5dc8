#include "doors/amudp/spawn.hpp"

#include <amudp_spmd.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/file_signals.hpp"
#include "doors/amudp/library.hpp"

namespace fairlead::amudp {
namespace {

std::vector<Child> spawned;

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char letter : text) {
    if (letter == '\'') out += "'\\'";
    out += letter;
  }
  out += '\'';
  return out;
}

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> words;
  std::string word;
  for (const char* at = text != nullptr ? text : "";; ++at) {
    const bool is_space = *at == '\0' || *at == ' ' || *at == ',' || *at == '\t' || *at == '\n';
    if (!is_space) word += *at;
    if (is_space && !word.empty()) words.push_back(std::exchange(word, {}));
    if (*at == '\0') return words;
  }
}

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

std::string here() {
  char path[PATH_MAX];
  return getcwd(path, sizeof path) != nullptr ? path : "/";
}

struct Pipe {
  base::FileDescriptor from, to;
};

bool open_pipe(Pipe& pipe) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe = {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
  return true;
}

// Restores SIGCHLD's default action, so that an ended child keeps its PID until it is reaped. Returns whether SIGCHLD
// was ignored before; spawned programs then ignore it, as before.
bool were_children_ignored() {
  static const bool were = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
  return were;
}

// Starts a child whose output goes to the console. `input`, if any, is the first line that it reads.
bool start(const std::vector<std::string>& words, const std::string& input) {
  Pipe out, err, in;
  if (!open_pipe(out) || !open_pipe(err) || !open_pipe(in)) return false;
  const bool ignores_children = were_children_ignored();
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t console = getpid();
  const pid_t pid = fork();
  if (pid < 0) return false;
  if (pid == 0) {
    // The console's death ends the job, even if it comes before this call.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != console) _exit(1);
    dup2(out.to.get(), STDOUT_FILENO);
    dup2(err.to.get(), STDERR_FILENO);
    if (!input.empty()) dup2(in.from.get(), STDIN_FILENO);
    if (ignores_children) signal(SIGCHLD, SIG_IGN);
    execvp(argv[0], argv.data());
    std::fprintf(stderr, "cannot run %s: %s\n", argv[0], std::strerror(errno));
    _exit(127);
  }
  Child child{
      .pid = pid, .process = base::FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))), .outputs = {}};
  child.outputs[0].from = std::move(out.from);
  child.outputs[1].from = std::move(err.from);
  spawned.push_back(std::move(child));
  const std::string line = input + "\n";  // shorter than any pipe's buffer
  return input.empty() || base::write_now(in.to.get(), line) == line.size();
}

std::vector<std::string> command(int argc, char** argv) {
  std::vector<std::string> words{own_program()};
  for (int i = 1; i < argc; ++i) words.emplace_back(argv[i]);
  return words;
}

std::string shell_command(int argc, char** argv, const std::string& job) {
  std::string line = fmt::format("env {}={}", kJobVariable, quoted(job));
  for (const std::string& word : command(argc, argv)) {
    line += ' ';
    line += quoted(word);
  }
  return line;
}

}  // namespace

std::vector<Child> take_spawned() {
  return std::exchange(spawned, {});
}

sockaddr_in address_towards_servers() {
  sockaddr_in to{}, own{};
  to.sin_family = AF_INET;
  to.sin_port = htons(22);
  const auto servers = words_of(setting("SSH_SERVERS"));
  const std::string first = servers.empty() ? "" : servers.front().substr(servers.front().find('@') + 1);
  const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  socklen_t length = sizeof own;
  const bool is_known = inet_pton(AF_INET, first.c_str(), &to.sin_addr) == 1 &&
                        connect(probe, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
                        getsockname(probe, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  close(probe);
  if (!is_known) {
    fmt::print(stderr, "{}: the address that '{}' reaches this host by is not known: set AMUDP_MASTERIP\n",
               AMX_ProcessLabel, first);
    std::exit(2);
  }
  own.sin_port = 0;
  return own;
}

}  // namespace fairlead::amudp

using namespace fairlead::amudp;

int AMUDP_SPMDLocalSpawn(int processes, int argc, char** argv) {
  for (int i = 0; i < processes; ++i) {
    if (!start(command(argc, argv), {})) return 0;
  }
  return 1;
}

// The job's address goes through standard input, where other users cannot read it.
int AMUDP_SPMDSshSpawn(int processes, int argc, char** argv) {
  const auto servers = words_of(setting("SSH_SERVERS"));
  if (servers.empty()) {
    fmt::print(stderr, "{}: AMUDP_SSH_SERVERS names no host\n", AMX_ProcessLabel);
    return 0;
  }
  const char* program = setting("SSH_CMD");
  const char* folder = setting("SSH_REMOTE_PATH");
  const std::string line = fmt::format("cd {} && exec {}", quoted(folder != nullptr ? std::string(folder) : here()),
                                       shell_command(argc, argv, "-"));
  for (int i = 0; i < processes; ++i) {
    std::vector<std::string> words{program != nullptr ? program : "ssh", "-o", "BatchMode=yes"};
    for (const std::string& option : words_of(setting("SSH_OPTIONS"))) words.push_back(option);
    words.push_back(servers[static_cast<std::size_t>(i) % servers.size()]);
    words.push_back(line);
    if (!start(words, fairlead::base::environment(kJobVariable))) return 0;
  }
  return 1;
}

// Runs AMUDP_CSPAWN_CMD once: %N is the number of processes, %C the command of each, %D the folder, %M the hosts of
// AMUDP_CSPAWN_SERVERS, %% a per cent sign.
int AMUDP_SPMDCustomSpawn(int processes, int argc, char** argv) {
  const char* pattern = setting("CSPAWN_CMD");
  const char* servers = setting("CSPAWN_SERVERS");
  if (pattern == nullptr) {
    fmt::print(stderr, "{}: AMUDP_CSPAWN_CMD is not set: how should the processes be started?\n", AMX_ProcessLabel);
    return 0;
  }
  std::string line;
  for (const char* at = pattern; *at != '\0'; ++at) {
    if (*at != '%' || at[1] == '\0') {
      line += *at;
      continue;
    }
    switch (*++at) {
      case 'N':
        line += std::to_string(processes);
        break;
      case 'C':
        line += shell_command(argc, argv, fairlead::base::environment(kJobVariable));
        break;
      case 'D':
        line += quoted(here());
        break;
      case 'M':
        line += servers != nullptr ? servers : "";
        break;
      default:
        line += *at;
    }
  }
  return start({"/bin/sh", "-c", line}, {});
}

amudp_spawnfn_desc_t const AMUDP_Spawnfn_Desc[] = {
    {'L', "processes of this host", &AMUDP_SPMDLocalSpawn},
    {'S', "ssh to AMUDP_SSH_SERVERS in turn", &AMUDP_SPMDSshSpawn},
    {'C', "AMUDP_CSPAWN_CMD, with %N processes, %C command, %D folder, %M hosts", &AMUDP_SPMDCustomSpawn},
    {0, nullptr, nullptr},
};
