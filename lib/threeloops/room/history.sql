create table if not exists sessions (id text primary key, mode text not null, options text not null, plan text not null, started_s real not null, ended_s real);
create table if not exists shown (session text not null, position integer not null, at_s real not null, primary key (session, position));
create table if not exists attempts (
    session text not null, position integer not null, idea text not null, topic text not null, kind text not null, seed text not null, written text not null,
    status text not null, slips text not null, seconds real not null, target_s real not null, extra real not null, hints integer not null, at_s real not null, share real not null default 0, sure real,
    primary key (session, position));
create index if not exists attempts_by_time on attempts (at_s);
create table if not exists cards (idea text primary key, card text not null);
create table if not exists settings (name text primary key, value text not null);
