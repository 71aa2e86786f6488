select at, agent, server, tool, outcome, took, arg_bytes, result_bytes, stored, error
from call where at >= ? order by k desc limit ?
