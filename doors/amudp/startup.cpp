// Determines the role of this process in a job, and starts it.

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stop_token>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/thread.hpp"
#include "doors/amudp/console.hpp"
#include "doors/amudp/library.hpp"
#include "doors/amudp/spawn.hpp"
#include "doors/amudp/spmd.hpp"

namespace fairlead::amudp {
namespace {

constexpr int kUsage = 2;
Worker* the_worker = nullptr;  // never destroyed: its thread runs until the process ends, also within exit()
eb_t the_bundle = nullptr;

struct Part {
  en_t name;
  tag_t tag;
};

[[noreturn]] void refuse(const std::string& why) {
  fmt::print(stderr, "{}: {}\n", AMX_ProcessLabel, why);
  std::exit(kUsage);
}

// For the process that contains the console: once in each job.
void tell_settings_without_effect() {
  for (const std::string& line : settings_without_effect()) fmt::print(stderr, "{}: {}\n", AMX_ProcessLabel, line);
}

int depth_of(int wanted) {
  if (wanted > 0) return wanted;
  std::string error;
  const double asked = number_setting("NETWORKDEPTH", 128, {0, 1e9}, error);
  if (!error.empty()) refuse(error);
  return asked >= 1 ? static_cast<int>(std::min<double>(asked, AMUDP_MAX_NETWORKDEPTH)) : 128;
}

// Returns the job's address from the environment. "-" means that it is the first line of standard input, where others
// cannot see it.
std::optional<JobAddress> told_job() {
  const char* text = base::environment(kJobVariable);
  if (text == nullptr) return std::nullopt;
  std::string line = text;
  if (line == "-") {
    line.clear();
    char letter = 0;
    while (line.size() < 256 && read(STDIN_FILENO, &letter, 1) == 1 && letter != '\n') line += letter;
  }
  const auto job = JobAddress::parse(line);
  if (!job) refuse(fmt::format("{} is not of the form IP:PORT:SECRET", kJobVariable));
  return job;
}

// A console inside rank 0, for jobs that another program has started.
std::shared_ptr<std::atomic<bool>> inner_console_is_done;

JobAddress open_inner_console(const sockaddr_in& listen, int processes, int depth, const std::string& secret) {
  tell_settings_without_effect();
  std::string error;
  auto console = Console::open(
      {.listen = listen, .processes = static_cast<std::uint32_t>(processes), .depth = depth, .secret = secret}, error);
  if (!console) refuse(error);
  const JobAddress address = console->address();
  inner_console_is_done = std::make_shared<std::atomic<bool>>(false);
  auto thread = base::Thread::start([console = std::shared_ptr(std::move(console)), is_done = inner_console_is_done] {
    console->run();
    *is_done = true;
  });
  if (!thread) refuse(thread.error().message);
  thread->detach();
  return address;
}

// Converts a text that consists of one number, such as a command-line word or a rank.
std::optional<int> number_in(const char* text) {
  int number = 0;
  const std::string_view all = text != nullptr ? text : "";
  const auto [end, code] = std::from_chars(all.data(), all.data() + all.size(), number);
  return code == std::errc() && end == all.data() + all.size() ? std::optional(number) : std::nullopt;
}

sockaddr_in address_of(const char* ip) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, ip, &address.sin_addr) != 1)
    refuse(fmt::format("'{}' is no IPv4 address: names are not looked up", ip));
  return address;
}

std::unique_ptr<Worker> join_or_refuse(const JobAddress& job, int rank) {
  std::string error;
  auto joined = Worker::join(job, rank, error);
  if (!joined) refuse(error);
  return joined;
}

// Joins a job that is described by hand: FAIRLEAD_AM_RANK, _SIZE and _MASTER (IP:PORT:SECRET). Rank 0 listens there.
std::unique_ptr<Worker> join_by_hand(int depth) {
  const char* rank = base::environment("FAIRLEAD_AM_RANK");
  const char* size = base::environment("FAIRLEAD_AM_SIZE");
  const char* master = base::environment("FAIRLEAD_AM_MASTER");
  if (rank == nullptr) return nullptr;
  const auto job = master != nullptr ? JobAddress::parse(master) : std::nullopt;
  const int own = number_in(rank).value_or(-1), processes = number_in(size).value_or(0);
  if (!job || processes < 1 || static_cast<unsigned>(processes) > AMUDP_MAX_SPMDPROCS || own < 0 || own >= processes)
    refuse("a job by hand wants FAIRLEAD_AM_RANK (0..SIZE-1), FAIRLEAD_AM_SIZE and FAIRLEAD_AM_MASTER=IP:PORT:SECRET");
  if (own == 0) open_inner_console(job->where, processes, depth, job->secret);
  return join_or_refuse(*job, own);
}

std::unique_ptr<Worker> join_by_pmix(int depth) {
  std::string error;
  const auto launched = launched_by_pmix(error);
  if (!launched) refuse(error);
  std::string address;
  if (launched->rank == 0) {
    const char* ip = setting("MASTERIP");
    address =
        open_inner_console(address_of(ip != nullptr ? ip : "127.0.0.1"), launched->processes, depth, "").to_string();
  }
  const auto told = exchange_by_pmix(address, error);
  const auto job = told ? JobAddress::parse(*told) : std::nullopt;
  if (!job) refuse(told ? "rank 0 told no address of the job" : error);
  return join_or_refuse(*job, launched->rank);
}

void sleep_until_they_come(const std::stop_token& come) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait(lock, come, [] { return false; });
}

// Opens the endpoint of this rank, with all other ranks in its translation table.
int open_endpoint(Worker& job, eb_t* bundle, ep_t* endpoint) {
  AM_Init_AMUDP_NDEBUG();
  const char* ip = setting("WORKERIP");
  const std::string own = ip != nullptr ? ip : job.own_ip();
  AMUDP_SetUDPInterface(ntohl(address_of(own.c_str()).sin_addr.s_addr));
  Part mine{};
  if (const int code = AM_AllocateBundle(AM_SEQ, bundle); code != AM_OK) return code;
  if (const int code = AM_AllocateEndpoint(*bundle, endpoint, &mine.name); code != AM_OK) return code;
  mine.tag = (job.job() << 24 ^ static_cast<unsigned>(job.rank())) | 2;  // never AM_NONE or AM_ALL
  AM_SetTag(*endpoint, mine.tag);
  the_bundle = *bundle;
  const auto all = job.gather(std::as_bytes(std::span(&mine, 1)), sleep_until_they_come);
  if (all.size() != sizeof mine * static_cast<std::size_t>(job.processes())) return AM_ERR_RESOURCE;
  AM_SetNumTranslations(*endpoint, job.processes());
  for (int i = 0; i < job.processes(); ++i) {
    Part part{};
    std::memcpy(&part, all.data() + static_cast<std::size_t>(i) * sizeof part, sizeof part);
    if (const int code = AM_Map(*endpoint, i, part.name, part.tag); code != AM_OK) return code;
  }
  return AM_SetExpectedResources(*endpoint, job.processes(), job.depth());
}

// Serves the bundle while the other ranks come.
void serve_until_they_come(const std::stop_token& come) {
  fairlead::am::Bundle* bundle = library().is_bundle(the_bundle) ? the_bundle->bundle.get() : nullptr;
  if (bundle == nullptr || bundle->wait(fairlead::kNever, come) == fairlead::Status::bad_state)
    sleep_until_they_come(come);
}

// Starts the job as its console; ends with it.
[[noreturn]] void be_console(int argc, char** argv, int processes, int depth, amudp_spawnfn_t spawn) {
  // Its ranks would ignore the environment that makes them workers, and would become consoles themselves.
  if (!base::may_believe_environment())
    refuse("a set-user-id program starts no jobs: run it as the user that it belongs to");
  const bool is_told = processes != 0;
  int words = is_told ? 0 : 1;
  if (!is_told && argc > 1) processes = number_in(argv[1]).value_or(0);
  std::string letter;
  if (spawn == nullptr) {
    if (argc > words + 1) letter = argv[++words];
    if (const char* asked = setting("SPAWNFN"); letter.empty() && asked != nullptr) letter = asked;
    for (const amudp_spawnfn_desc_t* each = AMUDP_Spawnfn_Desc; each->abbrev != 0; ++each) {
      if (letter.size() == 1 && std::toupper(letter[0]) == each->abbrev) spawn = each->fnptr;
    }
  }
  if (processes < 1 || static_cast<unsigned>(processes) > AMUDP_MAX_SPMDPROCS || spawn == nullptr) {
    std::string known;
    for (const amudp_spawnfn_desc_t* each = AMUDP_Spawnfn_Desc; each->abbrev != 0; ++each)
      known += fmt::format("\n  {}  {}", each->abbrev, each->desc);
    refuse(fmt::format("usage: {} NPROCS SPAWN arguments...; SPAWN is one of{}", argv[0], known));
  }
  tell_settings_without_effect();
  const char* ip = setting("MASTERIP");
  std::string error;
  auto console = Console::open({.listen = ip != nullptr                  ? address_of(ip)
                                          : spawn == &AMUDP_SPMDSshSpawn ? address_towards_servers()
                                                                         : address_of("127.0.0.1"),
                                .processes = static_cast<std::uint32_t>(processes),
                                .depth = depth_of(depth)},
                               error);
  if (!console) refuse(error);
  setenv(kJobVariable, console->address().to_string().c_str(), 1);
  std::vector<char*> rest{argv[0]};
  for (int i = words + 1; i < argc; ++i) rest.push_back(argv[i]);
  const int count = static_cast<int>(rest.size());
  rest.push_back(nullptr);
  std::fflush(nullptr);
  if (spawn(processes, count, rest.data()) == 0) refuse("the processes of the job could not be started");
  unsetenv(kJobVariable);
  for (Child& child : take_spawned()) console->add_child(std::move(child));
  const int code = console->run();
  std::fflush(nullptr);
  _exit(code);
}

int start_up(int* argc, char*** argv, int processes, int depth, amudp_spawnfn_t spawn, uint64_t* job, eb_t* bundle,
             ep_t* endpoint, bool has_console) {
  if (argc == nullptr || argv == nullptr || bundle == nullptr || endpoint == nullptr)
    return fail(AM_ERR_BAD_ARG, "AMX_SPMDStartup", "want argc, argv, and where to put bundle and endpoint");
  if (the_worker) return fail(AM_ERR_RESOURCE, "AMX_SPMDStartup", "it was called before");
  if (const auto told = told_job()) {
    unsetenv(kJobVariable);  // must not reach our own children
    the_worker = join_or_refuse(*told, -1).release();
  } else if (auto by_hand = join_by_hand(depth_of(depth))) {
    the_worker = by_hand.release();
  } else if (is_started_by_pmix()) {
    the_worker = join_by_pmix(depth_of(depth)).release();
  } else if (has_console) {
    be_console(*argc, *argv, processes, depth, spawn);
  } else {
    the_worker = join_or_refuse(open_inner_console(address_of("127.0.0.1"), 1, depth_of(depth), ""), 0).release();
  }
  the_worker->inner_console_is_done = inner_console_is_done;
  if (job != nullptr) *job = the_worker->job();
  return open_endpoint(*the_worker, bundle, endpoint);
}

}  // namespace

Worker* worker() {
  return the_worker;
}

}  // namespace fairlead::amudp

using namespace fairlead::amudp;

int AMUDP_SPMDStartup_AMUDP_NDEBUG(int* argc, char*** argv, int processes, int depth, amudp_spawnfn_t spawn,
                                   uint64_t* job, eb_t* bundle, ep_t* endpoint) {
  return start_up(argc, argv, processes, depth, spawn, job, bundle, endpoint, true);
}

int AMUDP_SPMDStartup_AMUDP_DEBUG(int* argc, char*** argv, int processes, int depth, amudp_spawnfn_t spawn,
                                  uint64_t* job, eb_t* bundle, ep_t* endpoint) {
  return start_up(argc, argv, processes, depth, spawn, job, bundle, endpoint, true);
}

extern "C" int AMMPI_SPMDStartup(int* argc, char*** argv, int depth, uint64_t* job, eb_t* bundle, ep_t* endpoint) {
  return start_up(argc, argv, 0, depth, nullptr, job, bundle, endpoint, false);
}

int AMUDP_SPMDIsWorker(char**) {
  return worker() != nullptr || fairlead::base::environment(kJobVariable) != nullptr ||
         fairlead::base::environment("FAIRLEAD_AM_RANK") != nullptr || is_started_by_pmix();
}

int AMUDP_SPMDNumProcs(void) {
  return worker() != nullptr ? worker()->processes() : 0;
}

int AMUDP_SPMDMyProc(void) {
  return worker() != nullptr ? worker()->rank() : -1;
}

int AMUDP_SPMDSetExitCallback(amudp_exitcallback_t callback) {
  if (worker() == nullptr) return fail(AM_ERR_NOT_INIT, "AMX_SPMDSetExitCallback", "AMX_SPMDStartup was not called");
  worker()->exit_callback = callback;
  return AM_OK;
}

int AMUDP_SPMDExit(int code) {
  if (worker() == nullptr) return fail(AM_ERR_NOT_INIT, "AMX_SPMDExit", "AMX_SPMDStartup was not called");
  worker()->exit(code);
}

int AMUDP_SPMDAllGather(void* source, void* destination, size_t length) {
  if (worker() == nullptr) return fail(AM_ERR_NOT_INIT, "AMX_SPMDAllGather", "AMX_SPMDStartup was not called");
  if ((length != 0 && (source == nullptr || destination == nullptr)) ||
      length > kFrameMax / static_cast<unsigned>(worker()->processes()))
    return fail(AM_ERR_BAD_ARG, "AMX_SPMDAllGather", "want a source, a destination, and at most 256 MiB in all");
  if (worker()->is_inherited()) return fail(AM_ERR_RESOURCE, "AMX_SPMDAllGather", "a child of fork() is no rank");
  const auto all = worker()->gather({static_cast<const std::byte*>(source), length}, serve_until_they_come);
  if (all.size() != length * static_cast<std::size_t>(worker()->processes()))
    return fail(AM_ERR_RESOURCE, "AMX_SPMDAllGather", "the ranks gave parts of different lengths");
  if (!all.empty()) std::memcpy(destination, all.data(), all.size());
  return AM_OK;
}

int AMUDP_SPMDBarrier(void) {
  char none = 0;
  return AMUDP_SPMDAllGather(&none, &none, 0);
}

const char* AMUDP_SPMDgetenvMaster(const char* name) {
  return worker() != nullptr && name != nullptr ? worker()->environment(name) : nullptr;
}

int AMUDP_SPMDHandleControlTraffic(int* served) {
  if (served != nullptr) *served = 0;
  return AM_OK;
}
