#include "sim/plot.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <iterator>

namespace fairlead::sim {
namespace {

double seconds(base::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Escapes text for single quotes in gnuplot.
std::string in_quotes(std::string_view text) {
  std::string doubled;
  for (const char letter : text) doubled.append(letter == '\'' ? 2 : 1, letter);
  return doubled;
}

class Script {
 public:
  Script(const Samples& samples, const Scenario& scenario, const std::string& path) : samples_(samples) {
    add("set terminal svg size 1000,900 font 'sans-serif,11' background 'white'\nset output '{}'\n", in_quotes(path));
    add("set multiplot layout 3,1 title '{}' noenhanced\n",
        in_quotes(fmt::format("{}: {}", scenario.name, scenario.title)));
    add("set grid back lc '#dddddd'\nset border 3 lc '#666666'\nset tics nomirror\nset key top right noenhanced\n");
    add("set lmargin 11\nset datafile missing 'nan'\nset yrange [0:*]\nset xrange [0:{}]\n",
        samples.seconds().empty() ? 1.0 : std::max(samples.seconds().back(), 1e-9));
    for (const FaultPlan& fault : scenario.faults) {
      const base::Duration end = fault.lasting.count() == 0 ? scenario.time : fault.at + fault.lasting;
      add("set object rectangle from {},graph 0 to {},graph 1 behind fc '#f6e0dc' fs solid noborder\n",
          seconds(fault.at), seconds(end));
    }
  }

  void plot(std::string_view name, std::string_view label, const std::vector<Samples::Line>& lines) {
    if (lines.empty()) return;
    add("${} << EOD\n", name);
    for (std::size_t step = 0; step < samples_.seconds().size(); ++step) {
      add("{}", samples_.seconds()[step]);
      for (const Samples::Line& line : lines)
        std::isnan(line.values[step]) ? add(" nan") : add(" {}", line.values[step]);
      add("\n");
    }
    add("EOD\nset ylabel '{}'\nplot ", label);
    for (std::size_t i = 0; i < lines.size(); ++i)
      add("{}${} using 1:{} with lines lw 1.3 title '{}'", i == 0 ? "" : ", ", name, i + 2, in_quotes(lines[i].label));
    add("\n");
  }

  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), text, std::forward<Arguments>(arguments)...);
  }

  const std::string& text() const { return text_; }

 private:
  const Samples& samples_;
  std::string text_;
};

}  // namespace

Result<> write_svg(const Samples& samples, const Scenario& scenario, const std::string& path) {
  Script script(samples, scenario, path);
  script.plot("flight", "in flight, KiB", samples.in_flight_kib());
  script.plot("trip", "round trip, us", samples.round_trip_us());
  script.add("set xlabel 'time, s'\n");
  script.plot("goodput", "goodput, MB/s", samples.goodput_mb_per_s());
  script.add("unset multiplot\n");

  std::FILE* gnuplot = ::popen("gnuplot", "w");
  const bool is_written =
      gnuplot != nullptr && std::fwrite(script.text().data(), 1, script.text().size(), gnuplot) == script.text().size();
  const int ended = gnuplot == nullptr ? -1 : ::pclose(gnuplot);
  if (!is_written || ended != 0) {
    return std::unexpected(Error{Status::system, errno,
                                 fmt::format("gnuplot could not draw {}: install it (apt-get install gnuplot-nox), and "
                                             "check that the folder can be written to",
                                             path)});
  }
  return {};
}

}  // namespace fairlead::sim
